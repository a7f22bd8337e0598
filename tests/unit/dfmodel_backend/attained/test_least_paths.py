"""Paths bound what sets of kernels take: no replay of a set is shorter."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder
from dfcompile.dfmodel_backend import Overlap, TaskModel, load_system
from dfcompile.dfmodel_backend.attained import least_costs
from dfcompile.dfmodel_backend.attained.least_costs import LeastCosts, longest_paths
from dfcompile.dfmodel_backend.columns import members_of
from dfcompile.scheduler import ScheduleOptions
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags

SMALL = DagShape(max_scopes=5, max_members=3)
ROUNDING = 1e-9


def model_of(dag: CanonicalDag, pes: int) -> TaskModel:
    options = ScheduleOptions(pes)
    return TaskModel(dag, load_system(None).with_cores(pes), options, options, Overlap.PERFECT_OVERLAP)


def chain_with_a_buffer() -> CanonicalDag:
    """Return three tasks of 8 elements each, of which the last reads from memory what the second wrote."""
    builder = DagBuilder("chain")
    first, second, third = (builder.add_task(builder.add_scope(name)) for name in ("first", "second", "third"))
    array = builder.add_memory(builder.add_scope("array"))
    builder.add_edge(first, second, 8)
    builder.add_edge(second, array, 8)
    builder.add_edge(array, third, 8)
    return builder.finish()


def test_a_path_waits_for_memory_and_one_cycle_per_stream() -> None:
    model = model_of(chain_with_a_buffer(), 64)

    between = longest_paths(model.machine_dag, model.units.unit, model.units.count)

    # the second ends a cycle after the first, the third begins when the second has ended
    assert between.tolist() == [[8, 9, 17], [0, 8, 16], [0, 0, 8]]


def test_a_pair_of_sets_costs_the_longest_path_within_their_difference() -> None:
    model = model_of(chain_with_a_buffer(), 64)
    members = members_of((0b000, 0b001, 0b011, 0b111), 3)

    found_ns = LeastCosts(model).compute_ns(members, np.array([0, 0, 1, 2]), np.array([3, 2, 3, 3]))

    assert (found_ns * model.system.accelerator.frequency_ghz).tolist() == [17, 9, 16, 8]


@given(dag=canonical_dags(SMALL), pes=st.integers(1, 8), data=st.data())
@examples(40)
def test_no_replay_of_a_set_is_shorter(dag: CanonicalDag, pes: int, data: st.DataObject) -> None:
    model = model_of(dag, pes)
    count = model.units.count
    assume(count)
    down_sets = [
        units
        for units in range(1 << count)
        if all(model.units.predecessors[unit] & ~units == 0 for unit in model.units.members(units))
    ]
    before = data.draw(st.sampled_from(down_sets[:-1]))
    after = data.draw(st.sampled_from([larger for larger in down_sets if larger & before == before != larger]))

    bound_ns = LeastCosts(model).compute_ns(members_of((before, after), count), np.array([0]), np.array([1]))[0]
    found = model.configuration(after & ~before)

    assert found is not None
    assert bound_ns <= found.compute_ns * (1 + ROUNDING)


def test_of_a_large_graph_paths_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(chain_with_a_buffer(), 64)
    monkeypatch.setattr(least_costs, "MOST_CELLS", 11)  # four nodes, three units

    assert not longest_paths(model.machine_dag, model.units.unit, model.units.count).any()
