"""The importer: arrays, connectors and attributes of the program of level 0."""

import json
from collections.abc import Callable
from pathlib import Path

import dace
import numpy as np
import pytest

from dfcompile.errors import UnsupportedOpError
from dfcompile.frontend import Level, OperatorNode, Program, read_model
from dfcompile.frontend.sdfg.operator_graph import Operator, OperatorGraph, number_elements

ModelWriter = Callable[[str], Path]
ONES = ", ".join("1" for _ in range(54))
CONVOLUTION = f"""g (float[1,2,6,5] "in.put") => (float[1,3,4,3] y)
<float[3,2,3,3] "conv.weight" = {{{ONES}}}, float[3] tanh = {{1, 2, 3}}> {{
  [first] double = Conv<pads=[0,0,0,0], group=1, auto_pad="NOTSET">("in.put", "conv.weight", tanh)
  [second] t = LeakyRelu<alpha=0.1>(double)
  [third] y = Mul(t, t)
}}"""


def operators(program: Program) -> dict[str, OperatorNode]:
    found = [node for node in program.sdfg.start_state.nodes() if isinstance(node, OperatorNode)]
    return {node.origin: node for node in found}


def test_arrays_have_safe_names_shapes_and_lifetimes(write_model: ModelWriter) -> None:
    program = read_model(write_model(CONVOLUTION)).program

    described = {
        name: (tuple(array.shape), array.dtype, array.transient) for name, array in program.sdfg.arrays.items()
    }

    assert described == {
        "in_put": ((1, 2, 6, 5), dace.float32, False),
        "conv_weight": ((3, 2, 3, 3), dace.float32, False),
        "tanh_": ((3,), dace.float32, False),
        "double_": ((1, 3, 4, 3), dace.float32, True),
        "t": ((1, 3, 4, 3), dace.float32, True),
        "y": ((1, 3, 4, 3), dace.float32, False),
    }
    assert (program.inputs[0].name, program.inputs[0].array) == ("in.put", "in_put")
    assert program.level is Level.ONNX
    assert program.name == "model"
    program.sdfg.validate()


def test_operators_keep_operands_in_order(write_model: ModelWriter) -> None:
    program = read_model(write_model(CONVOLUTION)).program
    state = program.sdfg.start_state

    operands = {
        origin: [(edge.dst_conn, edge.data.data) for edge in sorted(state.in_edges(node), key=lambda e: e.dst_conn)]
        for origin, node in operators(program).items()
    }

    assert operands == {
        "conv": [("in_0", "in_put"), ("in_1", "conv_weight"), ("in_2", "tanh_")],
        "second": [("in_0", "double_")],
        "third": [("in_0", "t"), ("in_1", "t")],
    }
    assert all(edge.data.num_elements() == program.sdfg.arrays[edge.data.data].total_size for edge in state.edges())


def test_each_array_has_one_access_node(write_model: ModelWriter) -> None:
    state = read_model(write_model(CONVOLUTION)).program.sdfg.start_state

    names = [node.data for node in state.data_nodes()]

    assert sorted(names) == ["conv_weight", "double_", "in_put", "t", "tanh_", "y"]


def test_attributes_are_plain_values(write_model: ModelWriter) -> None:
    found = operators(read_model(write_model(CONVOLUTION)).program)

    assert found["conv"].attributes == {"pads": [0, 0, 0, 0], "group": 1, "auto_pad": "NOTSET"}
    assert found["second"].attributes == {"alpha": 0.1}


def test_tensor_attribute_is_refused(write_model: ModelWriter) -> None:
    path = write_model(
        """g (float[1] x) => (y) <int64[2] huge = {1000000, 1000000}> {
          [c] z = ConstantOfShape<value = float[1] {2}>(huge)
          [a] y = Add(x, z)
        }"""
    )

    with pytest.raises(
        UnsupportedOpError, match=r"^node 'c': attribute 'value' of ConstantOfShape is a tensor against "
    ):
        read_model(path)


def test_omitted_operands_have_no_connector(write_model: ModelWriter) -> None:
    path = write_model('g (float[2] x) => (float[2] y) <float high = {6}> { [c] y = Clip(x, "", high) }')

    (clip,) = operators(read_model(path).program).values()

    assert list(clip.in_connectors) == ["in_0", "in_2"]


def test_scalars_are_arrays_of_one_element(write_model: ModelWriter) -> None:
    program = read_model(
        write_model("g (float[2] x) => (float y) <float w = {3}> { s = ReduceSum<keepdims=0>(x) y = Mul(s, w) }")
    ).program

    assert program.outputs[0].shape == ()
    assert tuple(program.sdfg.arrays["y"].shape) == (1,)
    assert program.parameters["w"].shape == (1,)
    program.sdfg.validate()


def test_constants_without_elements_have_no_connector(write_model: ModelWriter) -> None:
    path = write_model("g (float[1] x) => (float y) <int64[0] shape = {}> { [r] y = Reshape(x, shape) }")

    program = read_model(path).program

    assert list(operators(program)["r"].in_connectors) == ["in_0"]
    assert not program.parameters
    program.sdfg.validate()


@pytest.mark.parametrize("dtype", ["float16", "double", "int8", "uint8", "int32", "int64", "bool", "complex64"])
def test_element_types_survive(dtype: str, write_model: ModelWriter) -> None:
    program = read_model(write_model(f"g ({dtype}[2,3] x) => ({dtype}[3,2] y) {{ y = Transpose(x) }}")).program

    expected = np.dtype(dtype)

    assert [np.dtype(port.dtype) for port in (*program.inputs, *program.outputs)] == [expected] * 2
    assert {array.dtype.as_numpy_dtype() for array in program.sdfg.arrays.values()} == {expected}


def test_parameters_are_read_only(write_model: ModelWriter) -> None:
    parameters = read_model(write_model(CONVOLUTION)).program.parameters

    with pytest.raises(ValueError, match="read-only"):
        parameters["tanh_"][0] = 1
    assert not any(value.flags.writeable for value in parameters.values())


def test_program_survives_saving(write_model: ModelWriter, tmp_path: Path) -> None:
    program = read_model(write_model(CONVOLUTION)).program
    path = tmp_path / "level0.sdfg"

    program.sdfg.save(str(path))
    (state,) = dace.SDFG.from_file(str(path)).states()
    loaded = {node.origin: (node.op_type, node.attributes) for node in state.nodes() if isinstance(node, OperatorNode)}

    assert loaded == {origin: (node.op_type, node.attributes) for origin, node in operators(program).items()}


def test_nodes_and_memlets_are_those_that_dace_makes() -> None:
    program = OperatorGraph("g")
    for name in ("x", "y"):
        program.array(name, (2, 3), "float32", is_transient=False)
    program.add(Operator("op", "LeakyRelu", "first", ["", "x"], ["y"], {"alpha": 0.5}))
    own = dace.SDFG("g")
    for name in ("x", "y"):
        own.add_array(name, (2, 3), dace.float32)
    state = own.add_state("main", is_start_block=True)
    words = {"dialect": "onnx", "op_type": "LeakyRelu", "origin": "first"}
    node = OperatorNode("op", attributes={"alpha": 0.5}, inputs=("in_1",), outputs=("out_0",), **words)
    state.add_node(node)
    state.add_edge(state.add_access("x"), None, node, "in_1", dace.Memlet.from_array("x", own.arrays["x"]))
    state.add_edge(node, "out_0", state.add_access("y"), None, dace.Memlet.from_array("y", own.arrays["y"]))
    for sdfg in (program.sdfg, own):
        number_elements(sdfg)
        sdfg.validate()

    found, expected = (json.dumps(sdfg.start_state.to_json(), sort_keys=True) for sdfg in (program.sdfg, own))

    assert found == expected
    for made, known in zip(program.sdfg.start_state.edges(), state.edges(), strict=True):
        assert vars(made.data).keys() == vars(known.data).keys()
        assert made.data._is_data_src == known.data._is_data_src
        assert made.data._edge is made


def test_nodes_share_nothing_that_can_be_changed() -> None:
    program = OperatorGraph("g")
    for name in ("x", "y", "z"):
        program.array(name, (2, 3), "float32", is_transient=False)
    program.add(Operator("first", "Relu", "first", ["x"], ["y"], {}))
    program.add(Operator("second", "Relu", "second", ["y"], ["z"], {}))

    for elements in (program.state.nodes(), [edge.data for edge in program.state.edges()]):
        held = [value for each in elements for value in vars(each).values() if isinstance(value, dict | list | set)]
        assert len(held) == len({id(value) for value in held})
    ranges = [edge.data.subset.ranges for edge in program.state.edges()]
    assert len(ranges) == len({id(each) for each in ranges})
