import numpy as np
import pytest
from dace.sdfg.nodes import AccessNode, MapEntry, MapExit

from dfcompile.errors import InternalError, UnsupportedOpError, UserError
from dfcompile.frontend import Coverage, Level, OperatorNode, Program
from dfcompile.generators.single_operators import program_of_operator
from dfcompile.lowering import Choice, check_choices, lower_to_canonical, lower_to_maps, registered_expansions
from tests.interpreter import interpret
from tests.onnx_nodes import scopes
from tests.onnx_text import program_from_text

TABLE = registered_expansions()
CONV = "g (float[1,1,6,5] x) => (float[1,2,4,3] y) { y = Conv(x, w, b) }"


def conv() -> Program:
    return program_from_text(CONV, w=np.ones((2, 1, 3, 3), np.float32), b=np.ones(2, np.float32))


def operators(program: Program) -> dict[str, str]:
    return {node.name: node.op_type for node in program.sdfg.start_state.nodes() if isinstance(node, OperatorNode)}


def test_convolution_becomes_im2col_weights_product_bias_output() -> None:
    library = lower_to_canonical(conv(), TABLE)
    library.sdfg.validate()

    assert library.level is Level.CANONICAL
    assert {name.rpartition(".")[2]: op_type for name, op_type in operators(library).items()} == {
        "im2col": "Im2col",
        "weights": "Copy",
        "matmul": "MatMul",
        "bias": "Elementwise",
        "output": "Copy",
    }


@pytest.mark.parametrize("name", ["mv", "op", "lmv", "ip", "columns", "rows"])
def test_maps_level_has_one_state_with_only_map_scopes(name: str) -> None:
    maps = lower_to_maps(lower_to_canonical(conv(), TABLE), TABLE, [Choice("MatMul", name)])
    maps.sdfg.validate()
    state = maps.sdfg.start_state
    top_level = [node for node in state.nodes() if state.entry_node(node) is None]

    assert maps.sdfg.number_of_nodes() == 1
    assert all(isinstance(node, AccessNode | MapEntry | MapExit) for node in top_level)


def test_every_task_names_the_operator_of_the_user() -> None:
    program = conv()
    maps = lower_to_maps(lower_to_canonical(program, TABLE), TABLE)

    assert {scope.partition(".")[0] for scope in scopes(maps)} == {program.nodes[0].name}


def test_lowering_leaves_its_input_as_it_was() -> None:
    program = conv()
    before = program.sdfg.to_json()
    library = lower_to_canonical(program, TABLE)
    between = library.sdfg.to_json()
    lower_to_maps(library, TABLE)

    assert program.sdfg.to_json() == before
    assert library.sdfg.to_json() == between


def test_choice_for_an_origin_overrides_the_choice_for_the_type() -> None:
    program = program_from_text(
        "g (float[2,3] x) => (float[2,5] y) { t = MatMul(x, a)  y = MatMul(t, b) }",
        a=np.ones((3, 4), np.float32),
        b=np.ones((4, 5), np.float32),
    )
    first, second = (node.name for node in program.nodes)
    library = lower_to_canonical(program, TABLE)
    maps = lower_to_maps(library, TABLE, [Choice("MatMul", "op"), Choice("MatMul", "ip", origin=second)])

    assert f"{first}.matmul.op" in scopes(maps)
    assert f"{second}.matmul.ip" in scopes(maps)
    assert f"{second}.matmul.op" not in scopes(maps)


def test_reshape_is_a_view_without_tasks() -> None:
    program = program_from_text("g (float[2,6] x) => (float[3,4] y) { r = Relu(x)  s = Reshape(r, shape)  y = Neg(s) }",
                                shape=np.array([3, 4]))  # fmt: skip
    library = lower_to_canonical(program, TABLE)
    maps = lower_to_maps(library, TABLE)

    assert [node.coverage for node in library.nodes] == [Coverage.COSTED, Coverage.VIEW, Coverage.COSTED]
    assert len(scopes(maps)) == 2


def test_reshape_at_the_end_keeps_the_shape_of_the_model_output() -> None:
    program = program_from_text("g (float[2,6] x) => (float[3,4] y) { r = Relu(x)  y = Reshape(r, shape) }",
                                shape=np.array([3, 4]))  # fmt: skip
    maps = lower_to_maps(lower_to_canonical(program, TABLE), TABLE)
    (port,) = maps.outputs

    assert port.shape == (3, 4)
    assert tuple(maps.sdfg.arrays[port.array].shape) == (2, 6)
    assert not maps.sdfg.arrays[port.array].transient
    assert len(scopes(maps)) == 1


def test_reshape_that_is_an_output_can_be_read_as_well() -> None:
    program = program_from_text(
        "g (float[2,6] x) => (float[3,4] y, float[3,4] z) { r = Relu(x)  y = Reshape(r, shape)  z = Neg(y) }",
        shape=np.array([3, 4]),
    )
    maps = lower_to_maps(lower_to_canonical(program, TABLE), TABLE)
    maps.sdfg.validate()
    x = np.arange(-6, 6, dtype=np.float32).reshape(2, 6)

    found = interpret(maps, {"x": x})
    np.testing.assert_array_equal(found["y"], np.maximum(x, 0).reshape(3, 4))
    np.testing.assert_array_equal(found["z"], -np.maximum(x, 0).reshape(3, 4))
    assert len(scopes(maps)) == 2


def test_reshape_of_an_input_into_an_output_is_a_copy() -> None:
    program = program_from_text("g (float[2,6] x) => (float[3,4] y) { y = Reshape(x, shape) }",
                                shape=np.array([3, 4]))  # fmt: skip
    library = lower_to_canonical(program, TABLE)
    maps = lower_to_maps(library, TABLE)

    assert [node.coverage for node in library.nodes] == [Coverage.COSTED]
    assert len(scopes(maps)) == 1


def test_folded_transpose_is_a_parameter_in_row_order() -> None:
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    program = program_from_text("g (float[2] x) => (float[3,2] y) { t = Transpose(w)  y = Add(t, x) }", w=weights)
    maps = lower_to_maps(lower_to_canonical(program, TABLE), TABLE)

    found = interpret(maps, {"x": np.zeros(2, np.float32)})["y"]
    np.testing.assert_array_equal(found, weights.T)


def test_arrays_named_like_loops_and_operands_do_not_clash() -> None:
    program = program_from_text(
        "g (float[2,3] i) => (float[2,5] result) { result = MatMul(i, k) }", k=np.ones((3, 5), np.float32)
    )
    lower_to_maps(lower_to_canonical(program, TABLE), TABLE, [Choice("MatMul", "lmv")]).sdfg.validate()


def test_operator_without_expansion_names_node_and_nearest() -> None:
    operands = {"x0": (2, 3), "x1": (3, 4)}
    program = program_of_operator("MatMull", {}, Level.CANONICAL, operands, ("y", (2, 4)))
    with pytest.raises(UnsupportedOpError, match=r"node 'op': MatMull\(float32\[2,3\], .*did you mean 'MatMul'\?"):
        lower_to_maps(program, TABLE)


def test_levels_are_checked() -> None:
    with pytest.raises(InternalError, match="level ONNX against CANONICAL"):
        lower_to_maps(conv(), TABLE)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (Choice("MatMul", "lvm"), r"MatMul has no 'lvm' \(did you mean 'lmv'\?\)"),
        (Choice("Matmul", "mv"), r"no operator type 'Matmul' \(did you mean 'MatMul'\?\)"),
        (Choice("MatMul", "mv", origin="conv9"), r"no operator 'conv9'"),
        (Choice("Window", "rows"), r"the model has no Window"),
    ],
)
def test_choice_that_fits_nothing_is_an_error(choice: Choice, message: str) -> None:
    program = conv()
    programs = (program, lower_to_canonical(program, TABLE))
    with pytest.raises(UserError, match=message):
        check_choices([choice], TABLE, programs)


def test_choice_of_an_operator_that_lacks_the_type_is_an_error() -> None:
    program = program_from_text("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    library = lower_to_canonical(program, TABLE)
    origin = program.nodes[0].name
    with pytest.raises(UserError, match=rf"operator '{origin}' has no MatMul"):
        check_choices([Choice("MatMul", "mv", origin=origin)], TABLE, (program, library))
