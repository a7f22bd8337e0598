import numpy as np
import onnx.reference
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity, extract
from dfcompile.lowering import Choice, lower_to_canonical, lower_to_maps, registered_expansions
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import Node, check_node, random, scopes
from tests.onnx_text import model_from_text, program_from_model

TABLE = registered_expansions()
small = st.integers(1, 3)


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[str, dict[str, np.ndarray]]:
    """A Conv of one to three spatial dimensions, mostly not square, whose windows fit."""
    rank = draw(st.integers(1, 3))
    kernel = draw(st.lists(small, min_size=rank, max_size=rank))
    strides = draw(st.lists(small, min_size=rank, max_size=rank))
    dilations = draw(st.lists(st.integers(1, 2), min_size=rank, max_size=rank))
    pads = draw(st.lists(st.integers(0, 2), min_size=2 * rank, max_size=2 * rank))
    group, rows, channels, batch = draw(small), draw(small), draw(small), draw(st.integers(1, 2))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = [span + draw(st.integers(0, 3)) for span in spans]
    counts = [
        (size + pads[axis] + pads[rank + axis] - spans[axis]) // strides[axis] + 1 for axis, size in enumerate(sizes)
    ]
    shapes = {"x": [batch, group * channels, *sizes], "y": [batch, group * rows, *counts]}
    generator = np.random.default_rng(draw(st.integers(0, 9)))
    parameters = {"w": generator.uniform(-1, 1, (group * rows, channels, *kernel)).astype(np.float32)}
    if draw(st.booleans()):
        parameters["b"] = generator.uniform(-1, 1, group * rows).astype(np.float32)
    attributes = f"group={group}, strides={strides}, dilations={dilations}, pads={pads}"
    text = (
        f"g (float{_text(shapes['x'])} x) => (float{_text(shapes['y'])} y) "
        f"{{ y = Conv<{attributes}>({', '.join(['x', *parameters])}) }}"
    )
    return text, parameters


def reference(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    (expected,) = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x})
    return np.asarray(expected, dtype=np.float64)


def _text(shape: list[int]) -> str:
    return f"[{','.join(map(str, shape))}]"


@pytest.mark.parametrize(("name", "tasks"), [("im2col", "filters"), ("direct", "filters"), ("direct", "windows")])
@given(case=convolutions())
@examples(40)
def test_convolution_is_that_of_onnx(name: str, tasks: str, case: tuple[str, dict[str, np.ndarray]]) -> None:
    text, parameters = case
    model = model_from_text(text, **parameters)
    program = program_from_model(model)
    choices = [Choice("MatMul", "op"), Choice("Convolution", tasks)]
    maps = lower_to_maps(lower_to_canonical(program, TABLE, [Choice("Conv", name)]), TABLE, choices)
    (port,) = program.inputs
    x = np.random.default_rng(0).uniform(-1, 1, port.shape).astype(np.float32)
    error = interpret(maps, {port.name: x})["y"].astype(np.float64) - reference(model, x)

    assert np.max(np.abs(error)) < 1e-5
    extract(maps.sdfg)  # verifies that every task is canonical


@pytest.mark.parametrize(("auto_pad", "size"), [("SAME_UPPER", 3), ("SAME_LOWER", 3), ("VALID", 2)])
def test_automatic_padding_is_that_of_onnx(auto_pad: str, size: int) -> None:
    weights = np.arange(8, dtype=np.float32).reshape(1, 1, 2, 4)
    text = f'g (float[1,1,6,9] x) => (float[1,1,3,{size}] y) {{ y = Conv<auto_pad="{auto_pad}", strides=[2,3]>(x, w) }}'
    model = model_from_text(text, w=weights)
    maps = lower_to_maps(lower_to_canonical(program_from_model(model), TABLE), TABLE)
    x = np.random.default_rng(0).uniform(-1, 1, (1, 1, 6, 9)).astype(np.float32)
    error = interpret(maps, {"x": x})["y"].astype(np.float64) - reference(model, x)

    assert np.max(np.abs(error)) < 1e-4


def test_published_convolution_has_the_published_memory_traffic() -> None:
    program = program_from_model(
        model_from_text(
            "g (float[1,1,28,28] x) => (float[1,6,24,24] y) { y = Conv(x, w, b) }",
            w=np.ones((6, 1, 5, 5), np.float32),
            b=np.ones(6, np.float32),
        )
    )
    library = lower_to_canonical(program, TABLE)
    traffic = {}
    for name in ("mv", "op", "lmv"):
        dag = extract(lower_to_maps(library, TABLE, [Choice("MatMul", name)]).sdfg)
        touches_memory = dag.is_buffer[dag.edge_source] | dag.is_buffer[dag.edge_target]
        traffic[name] = (dag.tasks_count, int(dag.is_buffer.sum()), int(dag.edge_volume[touches_memory].sum()))

    assert traffic == {"mv": (582, 7, 129_474), "op": (30, 8, 222_636), "lmv": (12, 8, 150_636)}


@pytest.mark.parametrize(("kernel", "dilation"), [(2, 2), (3, 2), (2, 4)])
def test_windows_that_fit_need_no_padding(kernel: int, dilation: int) -> None:
    """Elements of a dilated window span no more than the last of them."""
    size = (kernel - 1) * dilation + 2
    node = Node("Conv", [random((1, 1, size)), random((1, 1, kernel))], attributes={"dilations": [dilation]})
    program = check_node(node)

    assert not any("pad" in scope for scope in scopes(program))


@pytest.mark.parametrize(
    ("tasks", "pieces", "iterations"),
    # 14 filters of 27 elements, 4 windows.
    [
        ("filters", None, [4 * 27] * 14),
        ("windows", None, [14 * 27] * 4),
        ("windows", 2, [2 * 14 * 27] * 2),
        ("windows", 28, [2 * 27] * 28),  # each window with two filters
    ],
)
def test_tasks_keep_a_filter_or_a_window(tasks: str, pieces: int | None, iterations: list[int]) -> None:
    text = "g (float[1,3,4,4] x) => (float[1,14,2,2] y) { y = Conv(x, w) }"
    program = program_from_model(model_from_text(text, w=np.ones((14, 3, 3, 3), np.float32)))
    library = lower_to_canonical(program, TABLE, [Choice("Conv", "direct")])
    maps = lower_to_maps(library, TABLE, [Choice("Convolution", tasks)])
    dag = extract(maps.sdfg, ExtractionOptions(granularity=Granularity(pieces=pieces)))

    assert dag.volume_in[dag.is_computational].tolist() == iterations
