"""Elements written at indices: constant places run by run, others where the run says."""

import numpy as np
import pytest

from dfcompile.canonical_dag.extraction import extract
from dfcompile.errors import UserError
from tests.onnx_nodes import Array, Node, check_node, lowered, random, scopes

REDUCTIONS = ["none", "add", "mul", "max", "min"]


def different(count: int, extents: tuple[int, ...], seed: int = 0) -> Array:
    """Return so many different places, some of them counted from the end."""
    generator = np.random.default_rng(seed)
    flat = generator.permutation(int(np.prod(extents)))[:count]
    places = np.stack(np.unravel_index(flat, extents), axis=-1)
    return places - np.array(extents) * generator.integers(0, 2, places.shape)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("constants", [(), (1,)])
@pytest.mark.parametrize("within", [1, 2, 3])
def test_rows_at_places_of_several_dimensions(within: int, constants: tuple[int, ...], reduction: str) -> None:
    shape = (4, 3, 5)
    places = different(3, shape[:within]).reshape(3, 1, within)
    node = Node(
        "ScatterND",
        [random(shape), places, random((3, 1, *shape[within:]), seed=1)],
        constants=constants,
        attributes={"reduction": reduction},
    )

    check_node(node)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_elements_along_an_axis(axis: int, reduction: str) -> None:
    shape = [2, 3, 2]
    shape[axis] = 4
    indices = np.argsort(random((6, 6, 6), seed=2), axis)[: shape[0], : shape[1], : shape[2]]
    places = indices - 6 * np.random.default_rng(0).integers(0, 2, shape)
    operands = [random((6, 6, 6)), places, random(shape, seed=1)]

    check_node(Node("ScatterElements", operands, attributes={"axis": axis, "reduction": reduction}))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint32", "int64"])
def test_what_is_combined_at_one_place_is_combined_with_what_is_there(dtype: str) -> None:
    operands = [random((5,), dtype), np.array([1, 1, -4, 3]), random((4,), dtype, seed=1)]

    check_node(Node("ScatterElements", operands, attributes={"reduction": "add"}), rtol=2e-3)


def test_truth_values_are_written_and_not_combined() -> None:
    operands = [random((5,), "bool"), np.array([[1], [3]]), random((2,), "bool", seed=1)]
    check_node(Node("ScatterND", operands))

    with pytest.raises(UserError, match=r"node 'op': .* attribute 'reduction' is 'add' of truth values"):
        lowered(Node("ScatterND", operands, attributes={"reduction": "add"}).model())


def test_a_slice_that_is_assigned_is_one_run() -> None:
    node = Node("ScatterND", [random((4, 6)), np.array([[1], [2]]), random((2, 6), seed=1)], constants=[1])
    program = check_node(node)
    dag = extract(program.sdfg)

    assert scopes(program) == ["op.write.copy", "op.write.write"]
    assert dag.edge_volume.tolist() == [24, 24, 12, 12]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_slice_of_elements_that_is_assigned_is_one_run(axis: int) -> None:
    shape = [3, 4, 5]
    shape[axis] = 2
    line = np.array([-2, -1]).reshape([2 if at == axis % 3 else 1 for at in range(3)])
    operands = [random((3, 4, 5)), np.broadcast_to(line, shape), random(shape, seed=1)]

    program = check_node(Node("ScatterElements", operands, [1], {"axis": axis}))

    assert scopes(program) == ["op.write.copy", "op.write.write"]


def test_an_array_all_of_which_is_assigned_is_not_copied() -> None:
    node = Node("ScatterND", [random((3, 2)), np.array([[2], [1], [0]]), random((3, 2), seed=1)], constants=[1])

    assert scopes(check_node(node)) == ["op.write"]


def test_constant_data_all_of_which_is_assigned_is_read_by_nobody() -> None:
    data, places, updates = np.zeros((2, 1, 3), np.float32), np.zeros((2, 1, 3), np.int64), random((2, 1, 3))
    maps = check_node(Node("ScatterElements", [data, places, updates], constants=[0, 1], attributes={"axis": -2}))

    dag = extract(maps.sdfg, parameters=tuple(maps.parameters))

    assert [len(kernel.inputs) for kernel in dag.kernels] == [1]


def test_each_update_is_one_element_written_to_memory() -> None:
    program = lowered(Node("ScatterND", [random((4, 6)), np.array([[1], [2]]), random((2, 6))]).model())
    dag = extract(program.sdfg)

    assert scopes(program) == ["op.update.copy", "op.update.update"]
    assert dag.tasks_count == 2
    assert sorted(dag.edge_volume.tolist()) == [12, 12, 12, 24, 24]  # indices, updates, written; copied
    assert "any" in {dag.orders[order] for order in dag.edge_order}


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [1, -2])
@pytest.mark.parametrize("constants", [(), (2,)])
def test_a_cache_is_written_from_the_place_of_each_sample(constants: tuple[int, ...], axis: int, mode: str) -> None:
    update = [2, 6, 6, 3]
    update[axis] = 2
    starts = np.array([3, 5 if mode == "circular" else 1])
    operands = [random((2, 6, 6, 3)), random(update, seed=1), starts]

    check_node(Node("TensorScatter", operands, constants, {"axis": axis, "mode": mode}, opset=24))


def test_a_cache_is_written_from_its_begin_if_nothing_is_said() -> None:
    node = Node("TensorScatter", [random((2, 4, 3)), random((2, 2, 3), seed=1)], opset=24)

    assert scopes(check_node(node)) == ["op.write.copy", "op.write.write"]


@pytest.mark.parametrize(
    ("op_type", "operands", "message"),
    [
        ("ScatterND", [random((3, 4)), np.array([[3]]), random((1, 4))], r"index \[3\] against 3 elements of 'x0'"),
        ("ScatterND", [random((3, 4)), np.array([[0]]), random((1, 3))], "'x2' is 1×3 against 1×4"),
        ("ScatterND", [random((3,)), np.array([[0, 0]]), random((1,))], "indices of 2 dimensions against 1 to 1"),
        ("ScatterElements", [random((3, 4)), np.array([[4]]), random((1, 1))], None),
        (
            "ScatterElements",
            [random((3, 4)), np.zeros((1, 5), int), random((1, 5))],
            "along axis 1 no more than it has",
        ),
        ("ScatterElements", [random((3,)), np.array([-4]), random((1,))], "index -4 against 3 elements of axis 0"),
        ("TensorScatter", [random((2, 4)), random((2, 3))], "axis 0 against one behind that of the batch"),
    ],
)
def test_what_does_not_fit_is_refused(op_type: str, operands: list[Array], message: str | None) -> None:
    node = Node(op_type, operands, constants=[1], opset=24)

    with pytest.raises(UserError, match=message or r"index 4 against 3 elements of axis 0 of 'x0'"):
        lowered(node.model())
