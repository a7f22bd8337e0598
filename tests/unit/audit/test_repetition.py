import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.audit.reports import most_under_way
from tests.examples import examples


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 25)), max_size=6), st.integers(1, 15))
def test_tasks_of_endless_iterations_are_counted(tasks: list[tuple[int, int]], interval: int) -> None:
    spans = [range(begin + again * interval, begin + again * interval + length) for begin, length in tasks
             for again in range(61)]  # fmt: skip
    counted = max(sum(cycle in span for span in spans) for cycle in range(60, 60 + interval))

    start = np.array([begin for begin, _ in tasks], dtype=np.int64)
    end = start + np.array([length for _, length in tasks], dtype=np.int64)
    assert most_under_way(start, end, interval) == counted
