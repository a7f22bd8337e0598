"""Resize against ONNX's reference implementation, and against onnxruntime where that implementation is none."""

from collections.abc import Mapping

import numpy as np
import onnx.parser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import extract
from dfcompile.errors import UnsupportedOpError
from dfcompile.frontend.onnx.onnxruntime_evaluation import evaluated
from dfcompile.lowering import Choice
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import Attribute, Node, assert_same, check_node, lowered, random, scopes

COORDINATES = ["align_corners", "asymmetric", "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"]
LINEAR: Mapping[str, Attribute] = {"mode": "linear"}


def resized(shape: tuple[int, ...], scales: list[float], attributes: Mapping[str, Attribute], opset: int = 19) -> Node:
    return Node("Resize", [random(shape), None, np.array(scales, np.float32)], [2], attributes, opset=opset)


@st.composite
def interpolations(draw: st.DrawFn) -> Node:
    mode = draw(st.sampled_from(["nearest", "linear", "cubic"]))
    attributes: dict[str, Attribute] = {"mode": mode}
    attributes["coordinate_transformation_mode"] = draw(st.sampled_from(COORDINATES))
    attributes["nearest_mode"] = draw(st.sampled_from(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"]))
    if mode == "cubic":
        attributes["cubic_coeff_a"] = draw(st.sampled_from([-0.75, -0.5]))
        attributes["exclude_outside"] = draw(st.integers(0, 1))
    if mode != "nearest":
        attributes["antialias"] = draw(st.integers(0, 1))
    # In these every place is exact: the reference computes it in double precision, others in single.
    shape = draw(st.lists(st.sampled_from([2, 4, 6]), min_size=1, max_size=3))
    scales = [draw(st.sampled_from([0.5, 1, 1, 2, 4])) for _ in shape]
    if attributes["coordinate_transformation_mode"] == "pytorch_half_pixel":
        # A single element is the one at 0 for ONNX's text, that at -1/2 for its reference implementation.
        scales = [1.0 if scale * extent == 1 else scale for scale, extent in zip(scales, shape, strict=True)]
    return resized(tuple(shape), scales, attributes)


@examples(60)
@given(interpolations(), st.sampled_from(["taps", "matmul"]))
def test_any_mode(node: Node, expansion: str) -> None:
    check_node(node, choices=[Choice("Resize", expansion)])


@pytest.mark.parametrize("mode", [("asymmetric", "floor"), ("half_pixel", "round_prefer_floor")])
def test_whole_factors_to_the_nearest_repeat(mode: tuple[str, str]) -> None:
    x = random((1, 2, 3, 2))
    attributes: dict[str, Attribute] = {"coordinate_transformation_mode": mode[0], "nearest_mode": mode[1]}
    node = Node("Resize", [x, None, np.array([1, 1, 2, 3], np.float32)], [2], attributes)
    program = check_node(node, x.repeat(2, axis=2).repeat(3, axis=3))

    assert [(chosen.op_type, chosen.name) for chosen in program.chosen][:1] == [("Resize", "repeat")]
    assert scopes(program) == ["op"]


def test_repeating_what_does_not_repeat_is_refused() -> None:
    node = resized((2, 3), [1, 1.5], {})
    refused = (
        r"^operator 'op': Resize=repeat does not fit: from \[2, 3\] to \[2, 4\] against whole factors to the nearest "
        r"element \(add --expand op:Resize=taps or matmul\)$"
    )
    with pytest.raises(UnsupportedOpError, match=refused):
        check_node(node, choices=[Choice("Resize", "repeat")])


def test_smaller_axes_come_first() -> None:
    program = check_node(resized((2, 4, 8), [1, 2, 0.25], LINEAR), choices=[Choice("Sample", "map")])

    assert scopes(program) == ["op.axis2", "op.axis1"]
    dag = extract(program.sdfg)
    # Each of 2 x 4 x 2 elements reads two of the data, then each of 2 x 8 x 2 reads two of those.
    assert sorted(dag.work.tolist())[-2:] == [32, 64]


def test_one_task_per_channel() -> None:
    node = resized((1, 8, 4, 4), [1, 1, 2, 2], LINEAR)
    program = check_node(node)
    dag = extract(program.sdfg)

    assert dag.tasks_count == 2 * 8
    # Along each axis two elements are read for each one of the result.
    assert sorted(dag.work.tolist())[-16:] == 8 * [8 * 4 * 2] + 8 * [8 * 8 * 2]


def test_halves_of_a_doubled_axis_are_those_of_the_neighbours() -> None:
    x = np.array([0, 4, 8], np.float32)
    node = Node("Resize", [x, None, np.array([2], np.float32)], [2], LINEAR)

    check_node(node, np.array([0, 1, 3, 5, 7, 8], np.float32))


@pytest.mark.parametrize("antialias", [0, 1])
def test_what_counts_nothing_is_not_read(antialias: int) -> None:
    """At both ends an element counts alone, and 0 times an infinity beside it were no number."""
    x = np.array([1, np.inf], np.float32)
    attributes: dict[str, Attribute] = {
        **LINEAR,
        "coordinate_transformation_mode": "align_corners",
        "antialias": antialias,
    }
    node = Node("Resize", [x, None, None, np.array([3], np.int64)], [3], attributes, opset=19)

    (y,) = interpret(lowered(node.model()), {"x0": x}).values()
    np.testing.assert_array_equal(y, np.array([1, np.inf, np.inf], np.float32))


def test_integers_are_cut_as_by_onnxruntime() -> None:
    x = np.array([[[[0, 3, -4, 100]]]], np.int32)
    node = Node("Resize", [x, None, np.array([1, 1, 1, 2], np.float32)], [2], LINEAR)

    check_node(node, np.array([[[[0, 0, 2, 1, -2, 22, 74, 100]]]], np.int32))


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
def test_aspect_ratio_of_sizes(policy: str) -> None:
    attributes: dict[str, Attribute] = {"mode": "linear", "keep_aspect_ratio_policy": policy, "axes": [1, 2]}
    check_node(Node("Resize", [random((2, 4, 4)), None, None, np.array([8, 2])], [3], attributes))


def test_what_is_outside_of_the_region_has_its_own_value() -> None:
    attributes: dict[str, Attribute] = {
        "mode": "linear",
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 7.5,
    }
    roi = np.array([0, 0.25, 0, 1, 1.5, 1], np.float32)
    node = Node("Resize", [random((2, 4, 3)), roi, None, np.array([2, 3, 3])], [1, 3], attributes)
    program = check_node(node)
    (found,) = interpret(program, node.feeds).values()

    assert (found[:, 2] == 7.5).all()
    assert not (found[:, :2] == 7.5).any()


def test_a_scale_that_two_definitions_read_differently_is_refused() -> None:
    attributes: dict[str, Attribute] = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    with pytest.raises(UnsupportedOpError, match=r"axis 1 of 4 elements has scale 0\.6 against one that gives a whole"):
        check_node(resized((1, 4), [1, 0.6], attributes))


@pytest.mark.parametrize(
    ("operands", "attributes", "reason"),
    [
        ([None, np.array([1, 2], np.float32)], {"mode": "sinc"}, "attribute 'mode' is 'sinc' against nearest, linear"),
        ([None, np.array([1, 2], np.float32)], {"antialias": 1}, "'antialias' is 1 against 0 in mode 'nearest'"),
        ([None, None, np.array([2, 4])],
         {"coordinate_transformation_mode": "tf_crop_and_resize"}, "operand 'roi' is omitted"),
    ],
)  # fmt: skip
def test_what_is_not_defined_is_refused(
    operands: list[np.ndarray | None], attributes: dict[str, Attribute], reason: str
) -> None:
    with pytest.raises(UnsupportedOpError, match=rf"node 'op': Resize.*{reason}"):
        lowered(Node("Resize", [random((2, 3)), *operands], [1, 2, 3], attributes, opset=19).model())


OLD = {
    ("Resize", 10): "y = Resize<mode={mode}>(x, s)",
    ("Upsample", 9): "y = Upsample<mode={mode}>(x, s)",
    ("Upsample", 7): "y = Upsample<mode={mode}, scales=[{scales}]>(x)",
}


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("scales", [(1.0, 1.0, 0.5, 1.5), (1.0, 1.0, 2.0, 0.6), (1.0, 1.0, 2.5, 3.0)])
@pytest.mark.parametrize(("op_type", "opset"), list(OLD))
def test_before_operator_set_11(op_type: str, opset: int, scales: tuple[float, ...], mode: str) -> None:
    """Then places were those of the first element, and the nearest one was before or behind, by the scale."""
    given = ", ".join(map(str, scales))
    body = OLD[op_type, opset].format(mode=f'"{mode}"', scales=given)
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : {opset}]> g (float[1,2,6,5] x) => (float[a,b,c,d] y) '
        f"<float[4] s = {{{given}}}> {{ {body} }}"
    )
    feeds = {"x": random((1, 2, 6, 5))}
    answer = evaluated(model, feeds)
    if op_type == "Upsample" and min(scales) < 1:
        assert answer is None
        return
    assert answer is not None

    assert_same(interpret(lowered(model), feeds), {"y": answer[1][0]}, 1e-5, 1e-5)
