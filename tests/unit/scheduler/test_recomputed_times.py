"""The times of a schedule are those that its blocks and streams give, found node by node."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions, Timing, schedule
from dfcompile.scheduler.recomputation import recompute_times
from tests.examples import examples
from tests.strategies import canonical_dags


@examples(80)
@given(canonical_dags(), st.integers(1, 6), st.sampled_from(["sb-lts", "sb-rlx", "best"]), st.booleans())
def test_times_of_every_schedule_with_barriers(dag: CanonicalDag, pes: int, partition: str, demote: bool) -> None:
    for timing in Timing:
        recompute_times(dag, schedule(dag, ScheduleOptions(pes, partition, demote, barrier=True, timing=timing)))


@examples(50)
@given(canonical_dags(), st.integers(1, 6), st.data())
def test_a_task_at_another_time_is_found(dag: CanonicalDag, pes: int, data: st.DataObject) -> None:
    timing = data.draw(st.sampled_from(list(Timing)))
    found = schedule(dag, ScheduleOptions(pes, timing=timing))
    column = data.draw(st.sampled_from(["last_out"] if timing.is_exact else ["start", "first_out", "last_out"]))
    tasks = np.flatnonzero(dag.is_computational).tolist()
    assume(len(tasks) > 0)
    node = data.draw(st.sampled_from(tasks))
    times = getattr(found, column).copy()
    times[node] += data.draw(st.sampled_from([-1, 1, 1000]))

    with pytest.raises(VerificationError, match="of the evaluator"):
        recompute_times(dag, replace(found, **{column: times}))
