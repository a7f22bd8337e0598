"""Normalisations against ONNX's reference implementation, or against their formula where it has none."""

import numpy as np
import pytest

from dfcompile.errors import UnsupportedOpError
from dfcompile.frontend import Level, Program
from dfcompile.generators.single_operators import program_of_operator
from dfcompile.lowering import lower_to_canonical, lower_to_maps
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, Array, Attribute, Node, check_node, random, scopes


def affine_operands(channels: int) -> list[Array]:
    scale, bias, mean = (random((channels,), seed=seed) for seed in (1, 2, 3))
    return [scale, bias, mean, 0.5 + np.abs(random((channels,), seed=4))]


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5), (1, 3, 2, 2, 2)])
@pytest.mark.parametrize("constants", [(), (1, 2, 3, 4), (1, 2)])
def test_batch_normalisation_of_any_rank(shape: tuple[int, ...], constants: tuple[int, ...]) -> None:
    node = Node("BatchNormalization", [random(shape), *affine_operands(3)], constants, {"epsilon": 0.1})
    program = check_node(node)

    assert scopes(program) == ["op"]
    assert len(program.parameters) == (2 if len(constants) == 4 else len(constants))


def test_batch_normalisation_of_training_is_refused() -> None:
    node = Node(
        "BatchNormalization", [random((2, 3)), *affine_operands(3)], attributes={"training_mode": 1}, results=(1, 1, 1)
    )
    with pytest.raises(UnsupportedOpError, match=r"node 'op': BatchNormalization.*'training_mode' is 1 against 0"):
        check_node(node, random((2, 3)))


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("results", [(1,), (1, 1), (1, 1, 1), (1, 0, 1)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_layer_normalisation_from_any_axis_on(axis: int, results: tuple[int, ...], *, has_bias: bool) -> None:
    shape = (2, 3, 4)
    operands = [random(shape), random(shape[axis:], seed=1), *([random(shape[axis:], seed=2)] if has_bias else [])]
    node = Node("LayerNormalization", operands, [1, 2], {"axis": axis, "epsilon": 0.01}, results)
    program = check_node(node)

    assert scopes(program)[:4] == ["op.sum", "op.mean", "op.squares", "op.inverse"]
    assert scopes(program)[-1] == "op.scale"


def test_layer_normalisation_of_far_away_data_is_exact() -> None:
    check_node(Node("LayerNormalization", [random((2, 8)) + 1000, np.ones(8, np.float32)]), rtol=1e-3, atol=1e-3)


def test_layer_normalisation_of_half_precision_sums_up_in_single_precision() -> None:
    node = Node("LayerNormalization", [random((2, 64), "float16") + 8, np.ones(64, np.float16)])
    program = check_node(node, rtol=1e-2, atol=1e-2)
    sums = [array.dtype.type for name, array in program.sdfg.arrays.items() if name.endswith("total")]

    assert sums == [np.float32]


def test_unusual_precision_is_refused() -> None:
    node = Node("LayerNormalization", [random((2, 8)), np.ones(8, np.float32)], attributes={"stash_type": 10})
    with pytest.raises(UnsupportedOpError, match="'stash_type' is 10 against 1"):
        check_node(node, random((2, 8)))


@pytest.mark.parametrize("axis", [1, -1])
def test_root_mean_square_normalisation(axis: int) -> None:
    shape = (2, 3, 4)
    node = Node("RMSNormalization", [random(shape), random(shape[axis:], seed=1)], [1], {"axis": axis}, opset=23)
    check_node(node)


@pytest.mark.parametrize("shape", [(2, 3, 5), (2, 3, 4, 5)])
def test_instance_normalisation(shape: tuple[int, ...]) -> None:
    scale, bias, _, _ = affine_operands(3)
    check_node(Node("InstanceNormalization", [random(shape), scale, bias], [1, 2], {"epsilon": 0.1}))


def onnx_program(
    op_type: str, inputs: list[tuple[int, ...]], output: tuple[int, ...], attributes: dict[str, Attribute]
) -> Program:
    """Return a program of one ONNX operator whose shapes ONNX cannot infer."""
    operands = {f"x{position}": shape for position, shape in enumerate(inputs)}
    program = program_of_operator(op_type, attributes, Level.ONNX, operands, ("y", output))
    return lower_to_maps(lower_to_canonical(program, TABLE), TABLE)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("scales", ["channel", "group"])
def test_group_normalisation(groups: int, scales: str) -> None:
    shape, length = (2, 4, 3, 2), groups if scales == "group" else 4
    attributes: dict[str, Attribute] = {"num_groups": groups, "epsilon": 0.1}
    program = onnx_program("GroupNormalization", [shape, (length,), (length,)], shape, attributes)
    x, scale, bias = random(shape), random((length,), seed=1), random((length,), seed=2)
    found = interpret(program, {"x0": x, "x1": scale, "x2": bias})["y"]
    grouped = x.reshape(2, groups, -1)
    normal = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 0.1)
    per_channel = [np.repeat(value, 4 // length)[:, None, None] for value in (scale, bias)]

    np.testing.assert_allclose(
        found.astype(np.float64), normal.reshape(shape) * per_channel[0] + per_channel[1], rtol=1e-4, atol=1e-5
    )


def test_groups_that_do_not_divide_the_channels_are_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="'num_groups' is 3 against a divisor of 4 channels"):
        onnx_program("GroupNormalization", [(2, 4, 3), (4,), (4,)], (2, 4, 3), {"num_groups": 3})


def test_mean_variance_normalisation() -> None:
    shape = (2, 3, 4, 2)
    found = interpret(onnx_program("MeanVarianceNormalization", [shape], shape, {}), {"x0": random(shape)})["y"]
    x = random(shape)
    expected = (x - x.mean((0, 2, 3), keepdims=True)) / (x.std((0, 2, 3), keepdims=True) + 1e-9)

    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_normalisation_by_a_norm(order: int, axis: int) -> None:
    x = random((2, 3, 4))
    x[0] = 0
    norm = np.linalg.norm(x, ord=order, axis=axis, keepdims=True)
    expected = np.divide(x, norm, out=np.zeros_like(x), where=norm != 0)
    check_node(Node("LpNormalization", [x], attributes={"axis": axis, "p": order}), expected)
