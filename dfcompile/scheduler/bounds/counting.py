"""What some processing element must run one after another: of k P + 1 tasks one of P elements runs k + 1.

The first of these ends no earlier than any of the tasks can end, the last one is followed by no less than any of them
is, and the k - 1 between them take their work. Work shared by P says nothing of large tasks of which few fit one after
another into the same time. Source: the bound of tasks on identical machines by their number [dellamico95], with
earliest ends and latest starts in place of the works of the first and of the last.
"""

import numpy as np

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.bounds.energy import some_values

_LOOKS = 2**22  # at tasks, over all pairs of an end and a start: a tenth of a second
_TIMES = 48  # ends, and starts
_FEWEST_TIMES = 3


def counting_bound(end: Int64, after_start: Int64, work: Int64, pes: int) -> int:
    """Return cycles that every schedule takes at least, by the tasks that one element must run.

    Of the tasks that end at e or later and start a or more before the end of the schedule those of the largest works
    are counted, for each k the k P + 1 largest: e + a + what the k - 1 smallest of them take.

    Args:
        end: earliest end of each task, shape [tasks].
        after_start: cycles from the start of each task to the end of the schedule, at least, shape [tasks].
        work: of each task, shape [tasks].
        pes: number of processing elements P.
    """
    if len(work) <= pes:
        return 0
    by_work = np.argsort(-work, kind="stable")
    end, after_start, work = end[by_work], after_start[by_work], work[by_work]
    best, tried = 0, max(min(_TIMES, int((_LOOKS / len(work)) ** 0.5)), _FEWEST_TIMES)
    for ended in some_values(end, tried):
        late = end >= ended
        after, works = after_start[late], work[late]
        for left in some_values(after, tried):
            inside = works[after >= left]
            if len(inside) <= pes:
                break
            best = max(best, ended + left + _most_between(inside, pes))
    return best


def _most_between(works: Int64, pes: int) -> int:
    """Return the most that the k - 1 smallest of the k P + 1 largest works take, over all k; works descend."""
    rounds = np.arange(1, (len(works) - 1) // pes + 1)
    until = np.concatenate([[0], np.cumsum(works)])
    taken = until[rounds * pes + 1] - until[rounds * pes + 2 - rounds]
    return int(taken.max())
