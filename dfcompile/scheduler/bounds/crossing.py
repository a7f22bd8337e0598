"""What must run between two times, at either of which at most P tasks are on the machine; and what on one element.

A task that cannot end before a time t, and is followed by so much that it starts before T - q in a schedule of T
cycles, does all its work between t and T - q, but for what it does before t or after T - q. Before t only those P tasks
do anything that are on the machine then; and of them each no more than if it began as late as its earliest end allows,
as what it keeps its element for is not its work alone. So with the end. Of P tasks that may be there at both times no
more counts than fits between. This is energetic reasoning with tasks that cross the borders of an interval
[baptiste01, 3.3], where a task may not leave before its producers have ended.

Of equal layers thousands of tasks are of a few kinds, which are looked at once; and of figures that take too many
values to look at each, some are looked at.
"""

import numpy as np

from dfcompile.canonical_dag.dag import Int64
from dfcompile.distinct import distinct

_LOOKS = 2**22  # at tasks, over all pairs of two values: a tenth of a second
_TIMES = 48
_FEWEST_TIMES = 3


def alike(*columns: Int64) -> tuple[Int64, Int64]:
    """Return tasks sorted so that those of equal figures follow one another, and where each kind of them begins.

    Args:
        columns: figures of the tasks, shape [tasks] each; the last one is the first to be sorted by.
    """
    order = np.lexsort(columns)
    is_first = np.ones(len(order), dtype=np.bool_)
    if len(order):
        is_first[1:] = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    return order, np.flatnonzero(is_first)


def largest_sum(values: Int64, counts: Int64, most: int) -> int:
    """Return the sum of so many of the largest values, of all if they are fewer.

    Args:
        values: shape [kinds].
        counts: how often each is there, once at least, shape [kinds].
        most: so many are added up.
    """
    if 0 < most < len(values):
        least = int(np.partition(values, len(values) - most)[len(values) - most])
        above = values > least
        values, counts = values[above], counts[above]
        others = most - int(counts.sum())
        if others >= 0:
            return int(values @ counts) + others * least
    descending = np.argsort(-values)
    return int(first_sums(values[descending], counts[descending], most))


def first_sums(values: Int64, counts: Int64, most: int) -> Int64:
    """Return the sums of so many first values, of all if they are fewer, each there a number of times.

    Args:
        values: shape [kinds].
        counts: how often each is there, shape [..., kinds].
        most: so many are added up.
    """
    # Summed by parts: what the first so many kinds hold counts with the step from the last one's value to the next.
    sums: Int64 = np.minimum(np.cumsum(counts, axis=-1), most) @ -np.diff(values, append=0)
    return sums


def some_values(values: Int64, most: int) -> list[int]:
    """Return so many of the different values at most, evenly spread, the least and the largest among them."""
    different = distinct(values)
    chosen: list[int] = different[distinct(np.linspace(0, len(different) - 1, most).astype(np.int64))].tolist()
    return chosen


def some_pairs(tasks: int) -> int:
    """Return how many values each of two figures are tried that so many tasks have: looking at them takes a while."""
    return max(min(_TIMES, int((_LOOKS / tasks) ** 0.5)), _FEWEST_TIMES)


def crossing_bound(end: Int64, after_start: Int64, work: Int64, pes: int) -> int:
    """Return cycles that every schedule takes at least, by what must run between two times.

    Args:
        end: earliest end of each task, shape [tasks].
        after_start: cycles from the start of each task to the end of the schedule, at least, shape [tasks].
        work: of each task, shape [tasks].
        pes: number of processing elements P.
    """
    if not len(work):
        return 0
    tried = some_pairs(len(work))
    order, firsts = alike(work, after_start, end)
    counts = np.diff(firsts, append=len(order))
    end, after_start, work = (column[order[firsts]] for column in (end, after_start, work))
    best = 0
    for time in some_values(np.append(end, 0), tried):
        late = np.flatnonzero(end >= time)
        own, after, there = work[late], after_start[late], counts[late]
        before = np.maximum(time - (end[late] - own), 0)
        for left in some_values(np.append(after, 0), tried):
            inside = after >= left
            number = there[inside]
            if int(number.sum()) <= pes:
                break  # all of them may be on the machine at both times
            works = own[inside]
            load = int(works @ number)
            if time + left - (-load // pes) <= best:
                continue  # even if nobody does anything outside
            ahead, behind = before[inside], np.maximum(left - (after - own), 0)[inside]
            load -= largest_sum(ahead, number, pes) + largest_sum(behind, number, pes)
            if time + left - (-load // pes) > best:
                sides = ((ahead, behind), (behind, ahead))
                best = max(best, time + left + max(_least_between((works, number), *side, pes) for side in sides))
    return best


def _least_between(tasks: tuple[Int64, Int64], there: Int64, others: Int64, pes: int) -> int:
    """Return the least cycles between two times in which P elements do the works of some tasks.

    Args:
        tasks: works of tasks, and how many there are of each.
        there: what each does outside if it is on its element at the one time and not at the other; at both times it
            does what does not fit between them.
        others: what each does outside if it is there at the other time.
        pes: P.
    """
    works, number = tasks
    load = int(works @ number) - largest_sum(others, number, pes)
    low, high = -1, max(-(-(load - largest_sum(there, number, pes)) // pes), 0)
    if bool((works - (high - 1) <= there).all()):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        outside = largest_sum(np.maximum(works - middle, there), number, pes)
        low, high = (low, middle) if pes * middle + outside >= load else (middle, high)
    return high


def counting_bound(end: Int64, after_start: Int64, work: Int64, pes: int) -> int:
    """Return cycles that every schedule takes at least, by the tasks that one element must run.

    Of k P + 1 tasks one of P elements runs k + 1, one after another. The first of these ends no earlier than any of the
    tasks can end, the last one is followed by no less than any of them is, and the k - 1 between them take their work.
    Work shared by P says nothing of large tasks of which few fit one after another into the same time. Source: the
    bound of tasks on identical machines by their number [dellamico95], with earliest ends and latest starts in
    place of the works of the first and of the last.

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
    best, tried = 0, some_pairs(len(work))
    for ended in some_values(end, tried):
        late = end >= ended
        after, works = after_start[late], work[late]
        for left in some_values(after, tried):
            inside = works[after >= left]
            if len(inside) <= pes:
                break
            # the most that the k - 1 smallest of the k P + 1 largest works take, over all k; works descend
            rounds = np.arange(1, (len(inside) - 1) // pes + 1)
            until = np.concatenate([[0], np.cumsum(inside)])
            best = max(best, ended + left + int((until[rounds * pes + 1] - until[rounds * pes + 2 - rounds]).max()))
    return best
