"""Sets of kernels that are alike are looked at once, and what is found is what each of them takes by itself."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder, NodeKind
from dfcompile.canonical_dag.dag import NO_KERNEL, NO_MEMBER, Scope
from dfcompile.canonical_dag.part import part_of
from dfcompile.canonical_dag.verifier import verify
from dfcompile.dfmodel_backend import Overlap, System, TaskModel
from dfcompile.dfmodel_backend.attained.footprints import MemoryEdges
from dfcompile.dfmodel_backend.attained.stores import Residency, StoreTable, StoreUse
from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration
from dfcompile.records import fields_of, replace
from dfcompile.scheduler import ScheduleOptions
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags
from tests.unit.dfmodel_backend.attained.test_fastest_chain import machine, machines

SMALL = DagShape(max_scopes=3, max_members=2, max_volume=4)


CHANGED = {"edge_element_bytes": (1, 2, 4), "edge_distinct": (1, 2, 3), "edge_order": (0, 1), "edge_first": (-1, 0, 4)}


@st.composite
def pairs(draw: st.DrawFn) -> CanonicalDag:
    """Two copies of a DAG side by side; the second has other names, some other edges, and perhaps another reader."""
    dag = draw(canonical_dags(SMALL))
    nodes, edges = dag.nodes_count, dag.edges_count
    shifts = {"node_scope": len(dag.scopes), "edge_source": nodes, "edge_target": nodes}
    columns = {
        name: np.concatenate([column, column + shifts.get(name, 0)])
        for name, column in (fields_of(dag) or {}).items()
        if isinstance(column, np.ndarray)
    }
    for name in draw(st.sets(st.sampled_from(sorted(CHANGED)))):
        for edge in draw(st.lists(st.integers(edges, 2 * edges - 1), max_size=2)) if edges else []:
            columns[name][edge] = draw(st.sampled_from(CHANGED[name]))
    columns["edge_distinct"] = np.minimum(columns["edge_distinct"], columns["edge_volume"])
    columns["edge_order"] = np.minimum(columns["edge_order"], len(dag.orders) - 1)
    scopes = [*dag.scopes, *(replace(scope, name=f"{scope.name}'", origin=f"{scope.origin}'") for scope in dag.scopes)]
    edge = draw(st.integers(edges, 2 * edges - 1)) if edges else 0
    source = int(columns["edge_source"][edge]) if edges else 0
    if edges and columns["kind"][source] <= NodeKind.BUFFER and draw(st.booleans()):
        scopes.append(Scope("reader", NO_KERNEL, "reader"))
        node = {"kind": NodeKind.SINK, "volume_in": columns["edge_volume"][edge], "volume_out": 0,
                "node_scope": len(scopes) - 1, "node_member": NO_MEMBER}  # fmt: skip
        copied = {name: columns[name][edge] for name in columns if name.startswith("edge_")}
        ends = {"edge_source": source, "edge_target": 2 * nodes}
        columns = {name: np.append(column, {**node, **copied, **ends}[name]) for name, column in columns.items()}
    read_only = {name: frozen(column, getattr(dag, name)) for name, column in columns.items()}
    found = replace(dag, scopes=tuple(scopes), **read_only)  # type: ignore[arg-type]  # by name
    assert not dag.kernels
    assert not dag.tensors
    verify(found)
    return found


def frozen(column: npt.NDArray[np.generic], like: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    found = column.astype(like.dtype)
    found.setflags(write=False)
    return found


def model_of(dag: CanonicalDag, system: System) -> TaskModel:
    options = ScheduleOptions(system.accelerator.cores)
    return TaskModel(dag, system, options, replace(options, partition="sb-rlx"), Overlap.PERFECT_OVERLAP)


def plain(found: TaskConfiguration | None) -> object:
    """Return a configuration as values that can be compared."""
    if found is None:
        return None
    values = dict(fields_of(found) or {})
    part, schedule = found.part, values.pop("schedule")
    values["part"] = (part.dag, part.node.tolist(), part.edge.tolist())
    residency = values.pop("residency")
    values["residency"] = [str(value) for value in (fields_of(residency) or {}).values()]
    columns = (fields_of(schedule) or {}).values()
    return values, [column.tolist() if isinstance(column, np.ndarray) else column for column in columns]


@given(pairs(), machines, st.booleans())
@examples(100)
def test_what_is_found_of_sets_that_are_alike_is_what_each_takes(
    both: CanonicalDag, system: System, is_planned: bool
) -> None:
    together = model_of(both, system)
    units = range(together.units.count)
    looked = 0
    for each in [1 << unit for unit in units] + [(1 << one) | (1 << other) for one, other in pairwise(units)]:
        found = together.planned(each) if is_planned else together.configuration(each)
        known = len(together._known)
        if known == looked:  # it is like another one
            alone = model_of(both, system)
            assert plain(found) == plain(alone.planned(each) if is_planned else alone.configuration(each))
        looked = known


def row_of_scopes(count: int) -> CanonicalDag:
    """Return elementwise tasks in a row, each of a scope of its own, and so a unit of its own."""
    builder = DagBuilder("row")
    nodes = [builder.add_memory(builder.add_scope("start"), NodeKind.PSEUDO_SOURCE)]
    nodes += [builder.add_tasks(builder.add_scope(f"t{at}"), 1)[0] for at in range(count)]
    nodes.append(builder.add_memory(builder.add_scope("end"), NodeKind.PSEUDO_SINK))
    ends = np.array(nodes)
    builder.add_edges(ends[:-1], ends[1:], np.full(count + 1, 8))
    return builder.finish()


WAYS = 5  # to schedule a set: as planned, as asked for, with two sizes of FIFOs, without streams


def test_equal_kernels_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bool] = []
    uses = StoreTable.uses

    def counted(table: StoreTable, edges: MemoryEdges, room: float) -> tuple[tuple[StoreUse, ...], Residency]:
        looked.append(True)
        return uses(table, edges, room)

    monkeypatch.setattr(StoreTable, "uses", counted)
    model = model_of(row_of_scopes(40), machine(4, 0.0, 4.0))
    found = [model.configuration(1 << unit) for unit in range(model.units.count)]

    assert [each.kernels for each in found if each is not None] == [(name,) for name in model.units.names]
    assert len(looked) <= 3 * WAYS  # the first, the last and all between them, scheduled in two ways


def test_parts_share_the_names_of_scopes() -> None:
    dag = row_of_scopes(4)
    parts = [part_of(dag, np.array([task]), np.array([task - 1, task])) for task in (1, 2, 3)]

    assert all(part.dag.scopes is dag.scopes_and_outside for part in parts)
    assert parts[0].dag.scopes[-1].name == "outside"
