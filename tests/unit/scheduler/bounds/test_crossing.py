"""What must run between two times."""

import numpy as np
import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.generators.canonical_dags import fft
from dfcompile.scheduler import lower_bound_cycles
from dfcompile.scheduler.bounds.crossing import crossing_bound


def _bound(tasks: list[tuple[int, int, int]], pes: int) -> int:
    """Of tasks given by earliest end, cycles from the start to the end of the schedule, and work."""
    end, after_start, work = (np.array(column, dtype=np.int64) for column in zip(*tasks, strict=True))
    return crossing_bound(end, after_start, work, pes)


def test_without_windows_the_work_is_shared() -> None:
    assert _bound([(10, 10, 10)] * 3, 2) == 15


def test_more_tasks_than_elements_are_not_there_at_one_time() -> None:
    """Each keeps its element for 1,000 cycles at least, whenever it begins, and three have two."""
    assert _bound([(1000, 1000, 10)] * 3, 2) == 2000


def test_nobody_ends_before_the_roots_do() -> None:
    """Until cycle 90 two elements are held by what begins there; of the others two may have done 20 each by then."""
    roots, others = [(90, 90, 90)] * 2, [(91, 20, 20)] * 10

    assert _bound([*roots, *others], 4) == 91 + (10 * 20 - 2 * 20 + 3) // 4


def test_of_a_long_task_only_what_fits_between_counts() -> None:
    """It is there all the time: alone on an element of its own it leaves the others the other one."""
    assert _bound([(100, 100, 100), (5, 5, 5), (5, 5, 5)], 2) <= 100


@pytest.mark.parametrize(
    ("dag", "pes", "bound"),
    [(fft(16, 2048, 1), 16, 4658), (fft(64, 2048, 1), 64, 4237), (fft(64, 2048, 1), 128, 2769)],
)
def test_a_tree_that_holds_its_elements_delays_what_follows(dag: CanonicalDag, pes: int, bound: int) -> None:
    """The solver of `cp_sat.py` proves no more of the first; the work alone gives 4,010, 3,298 and 1,649."""
    assert lower_bound_cycles(dag, pes) == bound
