"""Map scopes that become one: what is joined, what stays, and that no number and no figure gets worse."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from dace.sdfg.nodes import MapEntry
from hypothesis import given

from dfcompile.api.compile_model import compile_model
from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.dfmodel_backend import dataflow_graph
from dfcompile.driver import explore
from dfcompile.frontend import Program
from dfcompile.lowering import apply_passes, lower_to_canonical, lower_to_nests
from dfcompile.lowering.nests.program import NestProgram
from dfcompile.lowering.passes.fuse_maps import fuse_maps
from dfcompile.options import Choice
from tests.asked_options import asked
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, Array, checked_maps, random
from tests.onnx_text import model_from_text, program_from_text
from tests.unit.choosing.random_programs import choices, programs


def lowered(graph: str, **parameters: Array) -> NestProgram:
    return lower_to_nests(lower_to_canonical(program_from_text(graph, **parameters), TABLE), TABLE)


def scopes(program: NestProgram) -> int:
    return sum(isinstance(node, MapEntry) for node in checked_maps(program).sdfg.start_state.nodes())


def check_same(program: NestProgram, inputs: dict[str, Array]) -> NestProgram:
    """Check that the pass changes no number; return what it gives."""
    fused = apply_passes(program, [fuse_maps])
    before, after = (interpret(checked_maps(each), inputs) for each in (program, fused))
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)
    assert apply_passes(fused, [fuse_maps]) is fused
    return fused


@pytest.mark.parametrize(
    ("graph", "before", "after"),
    [
        # whatever the order of the loops
        ("g (float[2,3,4] x) => (float[4,2,3] y) { t = Transpose<perm=[2,0,1]>(x) y = Exp(t) }", 2, 1),
        ("g (float[2,3] x, float[3,2] z) => (float[3,2] y) { t = Transpose(x) y = Add(z, t) }", 2, 1),
        # a chain of three; a sum has an initialisation of its own
        ("g (float[2,3] x) => (float[3] y) { t = Exp(x) u = Transpose(t) y = ReduceSum<keepdims=0>(u, axes) }", 4, 2),
        # the operand of the reader is one that it reads as well
        ("g (float[3,3] x) => (float[3,3] y) { t = Transpose(x) y = Sub(x, t) }", 2, 1),
        # as stored between them
        ("g (float[4] x) => (float[4] y) { t = Cast<to=7>(x) y = Cast<to=1>(t) }", 2, 1),
        ("g (float[4] x) => (float[4] y) { t = Cast<to=10>(x) y = Cast<to=1>(t) }", 2, 1),
    ],
)
def test_scope_of_one_operand_is_computed_where_it_is_read(graph: str, before: int, after: int) -> None:
    parameters = {"axes": np.array([1])} if "axes" in graph else {}
    program = lowered(graph, **parameters)
    inputs: dict[str, Array] = {
        port.name: (3 * random(port.shape)).astype(np.float32) for port in program.library.inputs
    }

    fused = check_same(program, inputs)

    assert (scopes(program), scopes(fused)) == (before, after)
    assert [effect.name for effect in fused.applied] == ["fuse-maps"]


@pytest.mark.parametrize(
    "graph",
    [
        "g (float[2,3] x) => (float[2,3] t, float[2,3] y) { t = Exp(x) y = Neg(t) }",  # an output
        "g (float[2,3] x) => (float[2,3] y, float[2,3] z) { t = Exp(x) y = Neg(t) z = Abs(t) }",  # two readers
        "g (float[2,3] x) => (float[2,3] y) { t = Exp(x) y = Mul(t, t) }",  # or one twice
        "g (float[2,3] x, float[2,3] z) => (float[2,3] y) { t = Add(x, z) y = Neg(t) }",  # two operands
        "g (float[2,1] x, float[2,3] z) => (float[2,3] y) { t = Exp(x) y = Add(t, z) }",  # would be computed thrice
        "g (float[2,3] x) => (float[3,2] y) { t = Exp(x) u = Reshape(t, shape) y = Neg(u) }",  # seen through a view
        "g (float[4,3] x) => (float[2,3] y) { t = Slice(x, one, three, zero) y = Neg(t) }",  # of another size
    ],
)
def test_others_stay(graph: str) -> None:
    known = {"shape": [3, 2], "one": [1], "three": [3], "zero": [0]}
    parameters = {name: np.array(value, np.int64) for name, value in known.items() if name in graph}
    program = lowered(graph, **parameters)

    assert apply_passes(program, [fuse_maps]) is program


@given(programs(), choices())
@examples(20)
def test_no_number_changes_and_no_task_is_added(program: Program, chosen: list[Choice]) -> None:
    nests = lower_to_nests(lower_to_canonical(program, TABLE, chosen), TABLE, chosen)
    inputs: dict[str, Array] = {port.name: random(port.shape).astype(np.float32) for port in program.inputs}

    fused = check_same(nests, inputs)

    before, after = (extract_graph(each.graph, parameters=tuple(each.parameters)) for each in (nests, fused))
    assert after.tasks_count <= before.tasks_count
    assert int(after.work.sum()) <= int(before.work.sum())
    dataflow_graph(after)  # kernels and their tensors fit each other


def test_on_several_chips_what_was_fused_is_whole(tmp_path: Path) -> None:
    """Shares are made of operators, and of the scopes of one of these a part of another kernel was made."""
    graph = (
        "g (float[32,32] x) => (float[32,32] y) "
        "{ a = MatMul(x, w) r = Relu(a) s = Softmax(r) t = Transpose(s) y = MatMul(t, w) }"
    )
    file = tmp_path / "chain.onnx"
    onnx.save(model_from_text(graph, w=random((32, 32))), file)
    (before, after) = (
        explore(asked(file, (32,), chips=(1, 2), system="sn30", passes=passes)).points
        for passes in ((), ("fuse-maps",))
    )

    assert before[1].attained.chips == 2
    assert after[1].attained.time_s == after[0].attained.time_s
    assert after[0].attained.time_s <= before[0].attained.time_s


def test_kernel_knows_its_new_operand() -> None:
    graph = "g (float[5,4] x) => (float[4,6] y) { t = Transpose(x) y = MatMul(t, w) }"
    program = lowered(graph, w=random((5, 6)))
    loops = {kernel.name: kernel.loops for kernel in extract_graph(program.graph).kernels}
    fused = check_same(program, {"x": random((5, 4))})
    (kernel,) = extract_graph(fused.graph).kernels

    assert kernel.op == "MatMul"
    assert kernel.inputs[0] == "x"
    before = {loop.name: loop.inputs[0] for loop in loops[kernel.name]}
    for loop in kernel.loops:
        digit, was = loop.inputs[0], before[loop.name]
        assert (digit is None) == (was is None)
        if digit is not None and was is not None:  # rows of t are columns of x
            assert (was.stride, digit.stride) in ((5, 1), (1, 4))


def test_report_says_what_a_pass_did() -> None:
    model = model_from_text("g (float[2,3] x) => (float[3,2] y) { t = Transpose(x) y = Exp(t) }")
    run = compile_model(model, pes=4, expand="published", passes=["fuse-maps", "drop-dead"])
    (said,) = (found for found in run.report.assumptions if found.source == "--passes")

    assert (said.name, said.value) == ("pass 'fuse-maps'", "2 map scopes became 1")
