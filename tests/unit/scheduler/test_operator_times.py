from collections import Counter
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.options import Effort
from dfcompile.scheduler import Schedule, ScheduleOptions, schedule
from dfcompile.scheduler.operator_times import operator_times, shared
from tests.examples import examples
from tests.strategies import canonical_dags


def cycle_by_cycle(dag: CanonicalDag, found: Schedule) -> tuple[Counter[str], Counter[str]]:
    """Return per operator the cycles in which its tasks have an element, and its share of idle elements."""
    tasks = [node for node, is_task in enumerate(dag.is_computational.tolist()) if is_task]
    held: Counter[str] = Counter()
    idle: dict[str, Fraction] = {}
    waiting = 0
    for cycle in range(found.makespan_cycles):
        running = [
            dag.scopes[dag.node_scope[task]].origin
            for task in tasks
            if found.start[task] <= cycle < found.last_out[task]
        ]
        held.update(running)
        waiting += found.pes - len(running)
        for origin in running:
            idle[origin] = idle.get(origin, Fraction()) + Fraction(waiting, len(running))
        waiting = 0 if running else waiting
    return held, Counter(idle)


@given(canonical_dags(), st.integers(1, 9), st.sampled_from(["best", "sb-rlx"]))
@examples(60)
def test_times_are_those_of_every_cycle(dag: CanonicalDag, pes: int, partition: str) -> None:
    found = schedule(dag, ScheduleOptions(pes, partition, effort=Effort.QUICK))
    times = operator_times(dag, found)
    held, idle = cycle_by_cycle(dag, found)

    assert {time.origin: time.work_cycles + time.waiting_cycles for time in times} == held
    assert all(abs(time.idle_cycles - idle[time.origin]) <= 1 for time in times)
    assert all(min(time.work_cycles, time.waiting_cycles, time.idle_cycles) >= 0 for time in times)
    assert sum(time.work_cycles for time in times) == dag.work.sum()
    together = sum(time.work_cycles + time.waiting_cycles + time.idle_cycles for time in times)
    assert together == pes * found.makespan_cycles


@given(st.integers(0, 99), st.lists(st.integers(0, 9)).filter(any))
def test_shares_are_whole_and_add_up(total: int, parts: list[int]) -> None:
    found = shared(total, parts)

    assert sum(found) == total
    for share, part in zip(found, parts, strict=True):
        assert abs(share - Fraction(total * part, sum(parts))) <= 1
