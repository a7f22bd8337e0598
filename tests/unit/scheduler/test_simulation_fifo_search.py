"""Minimal FIFO capacities found by search against the simulator."""

import numpy as np
import pytest
from hypothesis import assume, given

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace
from dfcompile.scheduler.fifo import minimal_fifo_sizes
from dfcompile.scheduler.simulation import Replay, simulate
from tests.examples import examples
from tests.unit.scheduler.plain_replay import replays
from tests.unit.scheduler.streams import all_streamed, bypass, chain


def unbounded(dag: CanonicalDag, replay: Replay) -> Replay:
    return replace(replay, fifo_capacity=dag.edge_volume)


def test_bypass_of_a_reduction_holds_what_the_other_path_delays() -> None:
    dag = bypass(64, [64, 8, 64])

    sizes = minimal_fifo_sizes(dag, all_streamed(dag, 1))

    # fork, x0, x1 (8 to 1), x2 (1 to 8), x3, join: the bypass alone is deeper than one element.
    bypassing = int(np.flatnonzero((dag.edge_source == 1) & (sizes > 1))[0])
    assert dag.node_name(int(dag.edge_target[bypassing])) == "join"
    assert simulate(dag, replace(all_streamed(dag, 1), fifo_capacity=sizes)).makespan_cycles == 64 + 5 + 7


def test_chain_needs_one_element_each() -> None:
    dag = chain(5, 1000)

    assert minimal_fifo_sizes(dag, all_streamed(dag, 7)).tolist() == [0, 1, 1, 1, 1, 0]


@examples(60)
@given(replays(max_volume=12, most_hop=3, most_pipeline=4))
def test_no_size_can_be_lowered_and_none_delays(case: tuple[CanonicalDag, Replay]) -> None:
    dag, replay = case
    free = simulate(dag, unbounded(dag, replay))
    assume(not free.deadlock)

    sizes = minimal_fifo_sizes(dag, replay)
    sized = simulate(dag, replace(replay, fifo_capacity=sizes))

    assert sized.makespan_cycles == free.makespan_cycles
    assert ((sizes >= 1) == replay.streamed).all()
    for edge in np.flatnonzero(sizes > 1).tolist():
        lower = sizes.copy()
        lower[edge] -= 1
        found = simulate(dag, replace(replay, fifo_capacity=lower))
        assert found.deadlock or found.makespan_cycles > free.makespan_cycles


@examples(40)
@given(replays(max_volume=12, most_hop=3, most_pipeline=4))
def test_sizes_that_suffice_only_shrink(case: tuple[CanonicalDag, Replay]) -> None:
    dag, replay = case
    given_sizes = simulate(dag, replay)
    assume(not given_sizes.deadlock)

    sizes = minimal_fifo_sizes(dag, replay, given_sizes.makespan_cycles)

    assert (sizes <= np.where(replay.streamed, replay.fifo_capacity, 0)).all()
    assert simulate(dag, replace(replay, fifo_capacity=sizes)).makespan_cycles <= given_sizes.makespan_cycles


def test_a_schedule_that_cannot_end_is_infeasible() -> None:
    dag = chain(2, 4)
    replay = replace(
        all_streamed(dag, 1),
        pe=np.array([-1, 0, 0, -1], dtype=np.int32),
        order=np.array([0, 2, 1, 0], dtype=np.int64),
    )

    with pytest.raises(InfeasibleError, match=r"a deadlock with fifos of any size \('x0' waits for the end of 'x1', "):
        minimal_fifo_sizes(dag, replay)
