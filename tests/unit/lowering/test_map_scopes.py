"""Map scopes: what DaCe would make, and nothing shared between two of them."""

import re
from enum import Enum

import dace
import pytest
from dace.properties import CodeBlock
from dace.sdfg.nodes import MapEntry, MapExit, Node, Tasklet

from dfcompile.frontend.sdfg.operator_graph import apply_dace_settings, whole_memlet
from dfcompile.lowering.nests.sdfg import add_map_scope
from dfcompile.lowering.program_builder import ProgramBuilder
from tests.onnx_text import program_from_text

_SUM = "lambda a, b: a + b"
_IDENTIFIER = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UNCHANGEABLE = (str, int, type(None), Enum, dace.symbolic.sympy.Basic, dace.typeclass, tuple, frozenset)


def _state() -> dace.SDFGState:
    apply_dace_settings()
    sdfg = dace.SDFG("scopes")
    for name in ("x", "y", "z"):
        sdfg.add_array(name, [4, 8], dace.float32)
    return sdfg.add_state("main")


def _element(array: str, indices: str) -> dace.Memlet:
    return dace.Memlet(data=array, subset=indices, volume=1)


def _memlets(reads: dict[str, str], reduction: str | None) -> tuple[dict[str, dace.Memlet], dace.Memlet]:
    inputs = {variable: _element(array, "i, 2*j") for variable, array in reads.items()}
    output = _element("z", "i, j")
    output.wcr = reduction
    return inputs, output


def _add_scope(state: dace.SDFGState, reads: dict[str, str], reduction: str | None) -> None:
    inputs, output = _memlets(reads, reduction)
    sources = {array: state.add_access(array) for array in sorted(set(reads.values()))}
    add_map_scope(
        state,
        "scope",
        {"i": 4, "j": 4},
        {variable: (sources[array], inputs[variable]) for variable, array in reads.items()},
        "result = 1",
        "result",
        (state.add_access("z"), output),
    )


def _add_scope_of_dace(state: dace.SDFGState, reads: dict[str, str], reduction: str | None) -> None:
    inputs, output = _memlets(reads, reduction)
    _, entry, exit_ = state.add_mapped_tasklet(
        "scope",
        {"i": "0:4", "j": "0:4"},
        inputs,
        "result = 1",
        {"result": output},
        input_nodes={array: state.add_access(array) for array in sorted(set(reads.values()))},
        output_nodes={"z": state.add_access("z")},
        external_edges=True,
        propagate=False,
    )
    for edge in (*state.in_edges(entry), *state.out_edges(exit_)):
        edge.data = whole_memlet(state, edge.data.data)
        edge.data.wcr = reduction if edge.src is exit_ else None


def _text(state: dace.SDFGState) -> str:
    nodes = sorted(state.nodes(), key=lambda node: (type(node).__name__, str(node)))
    edges = sorted(
        str((edge.src, edge.src_conn, edge.dst, edge.dst_conn, edge.data.to_json())) for edge in state.edges()
    )
    return _IDENTIFIER.sub("guid", "\n".join([*(str(_properties(node)) for node in nodes), *edges]))


def _properties(node: Node) -> dict[str, object]:
    return {**dace.serialize.all_properties_to_json(node), "guid": ""}


@pytest.mark.parametrize("reduction", [None, _SUM])
@pytest.mark.parametrize("reads", [{}, {"a": "x"}, {"b": "y", "a": "x"}, {"b": "x", "a": "x"}], ids=str)
def test_a_scope_is_what_dace_would_add(reads: dict[str, str], reduction: str | None) -> None:
    own, expected = _state(), _state()
    _add_scope(own, reads, reduction)
    _add_scope_of_dace(expected, reads, reduction)
    own.sdfg.validate()
    assert _text(own) == _text(expected)


def test_two_scopes_share_nothing_that_can_be_changed() -> None:
    state = _state()

    def elements() -> list[object]:
        memlets = [whole_memlet(state, "x"), _element("x", "i, j")]
        tasklet, entry = add_map_scope(
            state, "scope", {"i": 4, "j": 8}, {"a": (state.add_access("x"), memlets[1])}, "result = a", "result",
            (state.add_access("z"), _element("z", "i, j")),
        )  # fmt: skip
        return [*memlets, tasklet, entry, state.exit_node(entry), entry.map]

    kinds = set()
    for one, other in zip(elements(), elements(), strict=True):
        kinds.add(type(one))
        _check_apart(one, other)
        if "_guid" in vars(one):
            assert vars(one)["_guid"] != vars(other)["_guid"]
    assert {Tasklet, MapEntry, MapExit} <= kinds


def test_arrays_of_two_programs_share_nothing_that_can_be_changed_and_are_what_dace_makes() -> None:
    program = program_from_text("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    made = []
    for _ in range(2):
        builder = ProgramBuilder(program)
        builder.add_array("t", (4, 5), "float32", materialised=True)
        made.append(builder.sdfg.arrays["t"])
    expected = dace.data.Array(dace.float32, (4, 5), transient=True, storage=dace.StorageType.CPU_Heap)

    assert made[0] is not made[1]
    assert {name: vars(array) for name, array in enumerate(made)} == dict.fromkeys(range(2), vars(expected))
    _check_apart(*made)


def _check_apart(one: object, other: object) -> None:
    for name, value in vars(one).items():
        if name in ("_sdfg", "_state"):  # of a memlet: the graph that it is in
            continue
        assert isinstance(value, _UNCHANGEABLE) or value is not vars(other)[name], name
        if isinstance(value, CodeBlock | dace.subsets.Range):
            _check_apart(value, vars(other)[name])


def test_a_change_of_one_scope_is_none_of_the_next() -> None:
    state = _state()

    def add() -> tuple[Tasklet, MapEntry]:
        write = (state.add_access("z"), _element("z", "i, j"))
        return add_map_scope(state, "scope", {"i": 4, "j": 8}, {}, "result = 1", "result", write)

    tasklet, entry = add()
    tasklet.location["origin"] = "conv1"
    tasklet.add_in_connector("more")
    tasklet.code_global.as_string = "more"
    entry.add_out_connector("more")
    entry.map.params.append("more")
    entry.map.range.ranges.pop()
    tasklet, entry = add()
    assert (tasklet.location, dict(tasklet.in_connectors), tasklet.code_global.as_string) == ({}, {}, "")
    assert (dict(entry.out_connectors), entry.map.params, str(entry.map.range)) == ({}, ["i", "j"], "0:4, 0:8")
