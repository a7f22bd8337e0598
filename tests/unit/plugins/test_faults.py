"""What a plug-in does wrong is its own fault, named; what we do wrong stays a bug."""

from collections.abc import Callable
from typing import Any

import dace
import numpy as np
import pytest

from dfcompile.canonical_dag import CanonicalDag, DagPass, apply_dag_passes, dag_pass
from dfcompile.errors import PluginError, UnsupportedOpError, UserError, VerificationError
from dfcompile.frontend import Level, Program
from dfcompile.generators.canonical_dags import chain, fork_join
from dfcompile.lowering import (
    CanonicalFragment,
    CanonicalNode,
    Choice,
    Expansion,
    ExpansionTable,
    LoweringPass,
    MapFragment,
    Operator,
    apply_passes,
    expansion,
    known_alternatives,
    lower_to_canonical,
    lower_to_maps,
    lower_to_nests,
    lowering_pass,
    onnx_expansion,
)
from dfcompile.lowering.alternatives.bound import expansion_bound
from dfcompile.lowering.nests.program import NestAccess, NestProgram, OperatorNests, View
from dfcompile.lowering.operators import MatMul
from dfcompile.lowering.tensor import Tensor
from dfcompile.plugins import Plugin, faults_of
from dfcompile.records import replace
from dfcompile.scheduler import Blocks, Partitioner, ScheduleOptions, schedule
from tests.onnx_nodes import TABLE
from tests.onnx_text import program_from_text

GRAPH = "g (float[2,3] x, float[3,4] w) => (float[2,4] y) { y = MatMul(x, w) }"
RELU = "g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }"


def raises(_op: CanonicalNode[MatMul], _build: MapFragment) -> None:
    _ = 1 // 0


def nothing(_op: CanonicalNode[MatMul], _build: MapFragment) -> None:
    pass


def some(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    a, c = op.input(0), op.output()
    build.map("", loops={"i": 2, "j": 3}, reads={"x": (a, ["i", "0"])}, write=(c, ["i", "j"]), code="x")


def beyond(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    a, c = op.input(0), op.output()
    build.map("", loops={"i": 2, "j": 4}, reads={"x": (a, ["i", "j"])}, write=(c, ["i", "j"]), code="x")


def flat(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    a, c = op.input(0), op.output()
    build.map("", loops={"i": 2, "j": 4}, reads={"x": (a, ["i"])}, write=(c, ["i", "j"]), code="x")


def crooked(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    a, c = op.input(0), op.output()
    build.map("", loops={"i": 2, "j": 4}, reads={"x": (a, ["i*i", "0"])}, write=(c, ["i", "j"]), code="x")


def unknown(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    a, c = op.input(0), op.output()
    build.map("", loops={"i": 2, "j": 4}, reads={"x": (a, ["k", "0"])}, write=(c, ["i", "j"]), code="x")


def empty(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    a, c = op.input(0), op.output()
    build.map("", loops={"i": 0, "j": 4}, reads={"x": (a, ["i", "0"])}, write=(c, ["i", "j"]), code="x")


def unwritten(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    t, c = build.array("t", (2, 4)), op.output()
    build.map("", loops={"i": 2, "j": 4}, reads={"x": (t, ["i", "j"])}, write=(c, ["i", "j"]), code="x")


def circular(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    some_, c = op.input(0), op.output()
    loops = {"i": 2, "j": 4}
    build.map("a", loops=loops, reads={"x": (some_, ["i", "0"])}, write=(c, ["i", "j"]), code="x")
    build.map("b", loops=loops, reads={"x": (c, ["i", "j"])}, write=(c, ["i", "j"]), code="x", after_write=True)


CANONICAL_FAULTS: list[tuple[Callable[[CanonicalNode[MatMul], MapFragment], None], str]] = [
    (raises, "ZeroDivisionError: integer division or modulo by zero"),
    (nothing, "operator 'y_1': 0 elements written of result 'y' against 8"),
    (some, "operator 'y_1': 6 elements written of result 'y' against 8"),
    (beyond, "scope y_1: index 'j' of 'x' from 0 to 3 against 0 to 2"),
    (flat, "scope y_1: 1 indices of 'x' against its shape [2, 3]"),
    (crooked, "scope y_1: index 'i*i' against an affine function of the loops"),
    (unknown, "scope y_1: index 'k': no loop 'k' among ['i', 'j']"),
    (empty, "scope y_1: empty loop in {'i': 0, 'j': 4}"),
    (unwritten, "scope y_1: reads 'y_one_t', which nothing has written"),
    (circular, "scope y_1.b: reads 'y', which it writes"),
]


def with_(*expansions: Expansion) -> ExpansionTable:
    return ExpansionTable.of([*TABLE.plugins, *(Plugin(each, "mylab.bad") for each in expansions)])


def foreign(rewrite: Callable[[CanonicalNode[MatMul], MapFragment], None]) -> Expansion:
    return replace(expansion(MatMul, "bad", source="lab")(rewrite), module="mylab.bad")


@pytest.mark.parametrize(("rewrite", "reason"), CANONICAL_FAULTS, ids=lambda each: getattr(each, "__name__", ""))
def test_an_expansion_of_a_canonical_operator_is_named(
    rewrite: Callable[[CanonicalNode[MatMul], MapFragment], None], reason: str
) -> None:
    table = with_(foreign(rewrite))
    library = lower_to_canonical(program_from_text(GRAPH), table)
    (node,) = [node for node in library.sdfg.start_state.nodes() if not isinstance(node, dace.nodes.AccessNode)]
    with pytest.raises(PluginError) as caught:
        lower_to_maps(library, table, [Choice("MatMul", "bad")])

    expected = reason.replace("y_1", node.name).replace("y_one", node.name.replace(".", "_"))
    assert str(caught.value) == f"in expansion mylab.bad.{rewrite.__name__}: {expected}"


@pytest.mark.parametrize("rewrite", [rewrite for rewrite, _ in CANONICAL_FAULTS])
def test_an_expansion_that_nobody_chose_is_left_out_of_the_bound(
    rewrite: Callable[[CanonicalNode[MatMul], MapFragment], None],
) -> None:
    program = program_from_text(GRAPH)
    plain, found = known_alternatives(program, TABLE), known_alternatives(program, with_(foreign(rewrite)))
    (line,) = found.left_out

    assert line.startswith(f"in expansion mylab.bad.{rewrite.__name__}: ")
    assert line.endswith(": left out of the bound over the known expansions")
    assert plain.left_out == ()
    assert expansion_bound(found, 4).cycles == expansion_bound(plain, 4).cycles


def onnx_nothing(_op: Operator, _build: CanonicalFragment) -> None:
    pass


def onnx_raises(_op: Operator, _build: CanonicalFragment) -> None:
    raise KeyError("weights")


def onnx_malformed(op: Operator, build: CanonicalFragment) -> None:
    build.add(MatMul(), [op.input(0), op.input(0)], op.output())


@pytest.mark.parametrize(
    ("rewrite", "reason"),
    [
        (onnx_nothing, "operator 'Relu_0': nothing writes its result 'y'"),
        (onnx_raises, "KeyError: 'weights'"),
        (onnx_malformed, "node 'Relu_0': MatMul: [2,3] @ [2,3] -> [2,3] against [n,k] @ [k,m] -> [n,m]"),
    ],
)
def test_an_expansion_of_an_onnx_operator_is_named(
    rewrite: Callable[[Operator, CanonicalFragment], None], reason: str
) -> None:
    bad = replace(onnx_expansion("Relu", "bad", source="lab")(rewrite), module="mylab.bad")
    program, table = program_from_text(RELU), with_(bad)
    with pytest.raises(PluginError, match=rf"^in expansion mylab\.bad\.{rewrite.__name__}: ") as caught:
        lower_to_maps(lower_to_canonical(program, table, [Choice("Relu", "bad")]), table)
    (line,) = known_alternatives(program, table).left_out

    assert str(caught.value).endswith(reason.replace("Relu_0", program.nodes[0].name))
    assert f"mylab.bad.{rewrite.__name__}" in line


def test_a_condition_that_raises_is_named() -> None:
    bad = replace(expansion(MatMul, "bad", source="lab", default=lambda op: op.inputs[9] is None)(some), module="m")
    table = with_(bad)
    library = lower_to_canonical(program_from_text(GRAPH), table)
    with pytest.raises(PluginError, match=r"^in condition of expansion m\.some: IndexError: tuple index out of range$"):
        lower_to_maps(library, table)

    assert lower_to_maps(library, table, [Choice("MatMul", "mv")]).chosen[-1].name == "mv"


def test_what_an_expansion_does_not_take_is_no_fault() -> None:
    def picky(op: CanonicalNode[MatMul], _build: MapFragment) -> None:
        raise op.unsupported("too small")

    library = lower_to_canonical(program_from_text(GRAPH), TABLE)
    with pytest.raises(UnsupportedOpError, match=r"^node .*too small$"):
        lower_to_maps(library, with_(foreign(picky)), [Choice("MatMul", "bad")])


def test_an_expansion_of_ours_that_raises_is_a_bug() -> None:
    ours = replace(foreign(raises), module="dfcompile.lowering.expansions.bad")
    library = lower_to_canonical(program_from_text(GRAPH), TABLE)
    with pytest.raises(ZeroDivisionError):
        lower_to_maps(library, with_(ours), [Choice("MatMul", "bad")])


def partition(fill: Callable[[CanonicalDag, int], object], overlapping: bool = False) -> Partitioner:
    return Partitioner("bad", "lab", "mylab.bad", fill, fill if overlapping else None)  # type: ignore[arg-type]


def all_in_one(dag: CanonicalDag, _pes: int) -> Blocks:
    return Blocks.of(dag, [0] * dag.nodes_count)


def reversed_order(dag: CanonicalDag, _pes: int) -> Blocks:
    return Blocks.in_order([0] * dag.nodes_count, list(range(dag.nodes_count))[::-1])


def repeated(dag: CanonicalDag, _pes: int) -> Blocks:
    return Blocks.in_order([0] * dag.nodes_count, [0] * dag.nodes_count)


def backward(dag: CanonicalDag, _pes: int) -> Blocks:
    count = dag.nodes_count
    return Blocks.in_order([count - node for node in range(count)], list(range(count)))


def lists(_dag: CanonicalDag, _pes: int) -> Blocks:
    return Blocks([0], [0])  # type: ignore[arg-type]  # what a plug-in may do


def division(_dag: CanonicalDag, _pes: int) -> Blocks:
    raise ZeroDivisionError


def gaps(dag: CanonicalDag, _pes: int) -> Blocks:
    blocks = Blocks.in_order(list(range(dag.nodes_count)), list(range(dag.nodes_count)))
    return replace(blocks, block=blocks.block * np.int32(2))


@pytest.mark.parametrize(
    ("fill", "reason"),
    [
        (lambda dag, _pes: [0] * dag.nodes_count, "returned list against Blocks"),
        (lambda _dag, _pes: None, "returned NoneType against Blocks"),
        (lists, "column block: found list against int32(6,)"),
        (lambda _dag, pes: all_in_one(chain(2), pes), "column block: found int32(4,) against int32(6,)"),
        (lambda _dag, pes: {}[pes], "KeyError: 2"),
        (all_in_one, "block 0: 4 tasks against at most 2"),
        (reversed_order, "edge 'start' -> 'task[0]': its target comes first in the order"),
        (repeated, "column order: not each of the 6 nodes once"),
        (backward, "edge 'start' -> 'task[0]': leads back to an earlier block"),
        (gaps, "column block: the numbers of the blocks are not 0, 1, 2, …"),
    ],
)
@pytest.mark.parametrize("barrier", [True, False])
def test_a_partitioner_is_named(fill: Callable[[CanonicalDag, int], object], reason: str, barrier: bool) -> None:
    with pytest.raises(PluginError) as caught:
        schedule(chain(4), ScheduleOptions(2, "bad", barrier=barrier), {"bad": partition(fill)})

    assert str(caught.value) == f"in partitioner mylab.bad.{fill.__qualname__}: {reason}"


def test_tasks_that_stream_to_one_another_must_fit_without_barriers_too() -> None:
    with pytest.raises(PluginError, match="4 tasks that stream to one another against at most 2"):
        schedule(chain(4), ScheduleOptions(2, "bad"), {"bad": partition(all_in_one, overlapping=True)})

    schedule(fork_join(4, 4), ScheduleOptions(10, "bad"), {"bad": partition(all_in_one, overlapping=True)})


def test_a_partitioner_of_ours_that_overfills_is_a_bug() -> None:
    ours = replace(partition(all_in_one), module="dfcompile.scheduler.partitioners.bad")
    with pytest.raises(ZeroDivisionError):
        replace(ours, partition=division).blocks(chain(4), 2, barrier=True)

    assert ours.blocks(chain(4), 2, barrier=True).count == 1


def program_pass(rewrite: Callable[[Program], object]) -> LoweringPass:
    return replace(lowering_pass("bad", level=Level.ONNX, source="lab")(rewrite), module="mylab.bad")


def without_array(program: Program) -> Program:
    return replace(program, outputs=(replace(program.outputs[0], array="nowhere"),))


def invalid(program: Program) -> Program:
    changed = dace.SDFG.from_json(program.sdfg.to_json())
    changed.start_state.add_access("nowhere")
    return replace(program, sdfg=changed)


@pytest.mark.parametrize(
    ("rewrite", "reason"),
    [
        (lambda _program: None, "returned NoneType against a Program"),
        (lambda program: program.sdfg, "returned SDFG against a Program"),
        (lambda program: replace(program, level=Level.MAPS), "level MAPS against ONNX"),
        (lambda program: replace(program, outputs=()), "outputs [] against [('y', (2, 3), 'float32')]"),
        (lambda _program: 1 // 0, "ZeroDivisionError: integer division or modulo by zero"),
        (without_array, "no array 'nowhere', which the program's border names"),
        (invalid, "invalid SDFG: "),
    ],
)
def test_a_pass_of_programs_is_named(rewrite: Callable[[Program], object], reason: str) -> None:
    with pytest.raises(PluginError) as caught:
        apply_passes(program_from_text(RELU), [program_pass(rewrite)])

    assert str(caught.value).startswith(f"in pass mylab.bad.{rewrite.__qualname__}: {reason}")


def changed_nest(**changes: Any) -> Callable[[NestProgram], NestProgram]:
    def change(program: NestProgram) -> NestProgram:
        (step,) = program.steps
        assert isinstance(step, OperatorNests)
        return replace(program, steps=(replace(step, nests=(replace(step.nests[0], **changes),)),))

    return change


TENSOR = Tensor("x", (2, 3), "float32")


@pytest.mark.parametrize(
    ("rewrite", "reason"),
    [
        (lambda _program: None, "returned NoneType against a NestProgram"),
        (lambda program: replace(program, steps=()), "output 'y': nothing writes 'y'"),
        (changed_nest(extents={"i0": 3, "i1": 3}), "scope {}: index 'i0' of 'x' from 0 to 2 against 0 to 1"),
        (changed_nest(code="a +"), "expression 'a +': found invalid syntax against an expression of Python"),
        (
            changed_nest(reads={"a": NestAccess(replace(TENSOR, name="t"), ({"i0": 1}, {"i1": 1}))}),
            "scope {}: reads 't', which nothing has written",
        ),
        (
            lambda program: replace(program, steps=(View(replace(TENSOR, name="v"), "t"), *program.steps)),
            "view 'v': of 't', which nothing has written",
        ),
    ],
)
def test_a_pass_of_nests_is_named(rewrite: Callable[[NestProgram], object], reason: str) -> None:
    bad = replace(lowering_pass("bad", level=Level.NESTS, source="lab")(rewrite), module="mylab.bad")
    program = lower_to_nests(lower_to_canonical(program_from_text(RELU), TABLE), TABLE)
    with pytest.raises((PluginError, UserError)) as caught:
        apply_passes(program, [bad])

    assert str(caught.value).endswith(reason.format(next(program.nests).name))


def dags_pass(rewrite: Callable[[CanonicalDag], object]) -> DagPass:
    return replace(dag_pass("bad", source="lab")(rewrite), module="mylab.bad")


def doubled(dag: CanonicalDag) -> CanonicalDag:
    volume = dag.edge_volume * 2
    volume.setflags(write=False)
    return replace(dag, edge_volume=volume)


@pytest.mark.parametrize(
    ("rewrite", "reason"),
    [
        (lambda _dag: None, "returned NoneType against a CanonicalDag"),
        (lambda dag: dag.edge_volume.sort(), "ValueError: sort array is read-only"),
        (doubled, "node 'task[0]': 4096 elements on input edge 'start' -> 'task[0]' against 2048 on another"),
    ],
)
def test_a_pass_of_dags_is_named(rewrite: Callable[[CanonicalDag], object], reason: str) -> None:
    with pytest.raises(PluginError) as caught:
        apply_dag_passes(chain(2), [dags_pass(rewrite)])

    assert str(caught.value).startswith(f"in pass mylab.bad.{rewrite.__qualname__}: {reason}")


def test_a_pass_of_ours_that_breaks_a_dag_is_a_bug_and_one_that_complains_is_named() -> None:
    def complains(_dag: CanonicalDag) -> CanonicalDag:
        raise UserError("option 'a': found 1 against 2")

    with pytest.raises(VerificationError, match=r"^in pass 'bad': node 'task"):
        apply_dag_passes(chain(2), [replace(dags_pass(doubled), module="dfcompile.canonical_dag.passes.bad")])
    with pytest.raises(UserError, match=r"^in pass 'bad': option 'a': found 1 against 2$"):
        apply_dag_passes(chain(2), [dags_pass(complains)])


def test_only_what_a_third_party_raises_is_turned_into_its_fault() -> None:
    with pytest.raises(KeyboardInterrupt), faults_of("solver", "mylab.solve"):
        raise KeyboardInterrupt
    with pytest.raises(MemoryError), faults_of("solver", "mylab.solve"):
        raise MemoryError
    named = r"^in solver mylab\.solve: SystemExit: 1$"
    with pytest.raises(PluginError, match=named), faults_of("solver", "mylab.solve"):
        raise SystemExit(1)
