"""The audit of the part on other expansions: the bound over them, hints, what separates operators from the ideal."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dfcompile.audit.comparing import ROUNDING, expect, expect_at_least, expect_figures, expect_rows
from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.audit.schedules import gap_above
from dfcompile.canonical_dag.dag import Int64
from dfcompile.distinct import distinct
from dfcompile.errors import VerificationError
from dfcompile.expansion_names import natural_order
from dfcompile.lowering import KnownAlternatives
from dfcompile.lowering.alternatives.known import OnnxAlternative, TaskScope
from dfcompile.options import Timing
from dfcompile.report.figures import ExpansionsSummary
from dfcompile.report.operator_figures import OperatorGapSummary
from dfcompile.study import Point


class There(NamedTuple):
    """From when an array can be read at the earliest, in cycles.

    Attributes:
        begun: as a stream.
        whole: from memory.
        writers: tasks that share a stream of it, at most.
    """

    begun: int
    whole: int
    writers: int


class Least(NamedTuple):
    """What something takes at least.

    Attributes:
        end: cycle in which it can have ended.
        work: cycles of all its tasks.
        there: the arrays that it writes.
    """

    end: int
    work: int
    there: Mapping[str, There]


_FROM_OUTSIDE = There(0, 0, 1)
Arrays = Mapping[str, There]
TasksOf = Callable[[Sequence[TaskScope], Arrays, set[str]], Least]  # by what is there, and what may come from tasks


def bound_over(known: KnownAlternatives, pes: int) -> int:
    """Return cycles that the model takes at least, whichever expansion each operator has, divided as these declare.

    Args:
        known: its operators under all their expansions.
        pes: number of processing elements P.
    """
    end, work = _least_of_all(known, lambda scopes, there, _: _tasks(scopes, there, pes))
    return max(end, shared_cycles(work, pes))


def chain_cycles(known: KnownAlternatives, word: int) -> int:
    """Return the cycles of dependent work in every lowering, each scope in as many tasks as it can be.

    Args:
        known: operators of the model under all their expansions.
        word: most elements that a task takes in a cycle.
    """
    end, _ = _least_of_all(known, lambda scopes, there, on_chip: _chained(scopes, there, word, on_chip))
    return end


def _least_of_all(known: KnownAlternatives, tasks: TasksOf) -> tuple[int, int]:
    """Return the end and the work of the model, each operator by the best of its expansions."""
    there: dict[str, There] = {}
    end = work = 0
    for op in known.operators:
        operands = {f"x{place}": there.get(array, _FROM_OUTSIDE) for place, array in op.inputs.items()}
        made = {f"x{place}" for place, array in op.inputs.items() if array in there}
        ways = [_lowered(way, operands, made, tasks) for way in op.expansions]
        for place, array in op.outputs.items():
            made_there = [done.there[way.results[place]] for way, done in zip(op.expansions, ways, strict=True)]
            there[array] = _soonest(made_there)
        end = max(end, min(done.end for done in ways))
        work += min(done.work for done in ways)
    return end, work


def divided_work(known: KnownAlternatives) -> Mapping[str, int]:
    """Return the least work of each of the user's operators, into however many tasks its scopes are divided."""
    written = {array for op in known.operators for array in op.outputs.values()}
    work: dict[str, int] = {}
    for op in known.operators:
        streams = {f"x{place}" for place, array in op.inputs.items() if array in written}
        ways = [_undivided_work(way, streams) for way in op.expansions]
        work[op.origin] = work.get(op.origin, 0) + min(ways)
    return work


def _chained(scopes: Sequence[TaskScope], before: Arrays, word: int, on_chip: set[str]) -> Least:
    """Return what tasks take that wait for one another alone."""
    there: dict[str, There] = {}
    last = 0
    for scope in scopes:
        arrays = (there.get(array) or before.get(array, _FROM_OUTSIDE) for array, _ in scope.reads)
        begin = max((array.begun for array in arrays), default=0)
        takes_slices = _takes_slices(scope, on_chip)
        elements = min(scope.least_iterations, scope.least_written) if takes_slices else scope.least_iterations
        whole = begin + max(elements // word, 1)
        begun = begin + 1 if scope.can_send and scope.least_written > 1 else whole
        there[scope.write] = There(max(begun, there.get(scope.write, _FROM_OUTSIDE).begun), whole, 1)
        last = max(last, whole)
    return Least(last, 0, there)


def alone(known: KnownAlternatives, pes: int) -> Iterator[tuple[str, str, Mapping[str, int]]]:
    """Yield operator, type and cycles by name of the expansion, of all types that offer several, outer ones first."""

    def tasks(scopes: Sequence[TaskScope], there: Arrays, _: set[str]) -> Least:
        return _tasks(scopes, there, pes)

    for op in known.operators:
        if len(op.expansions) > 1:
            cycles = {way.name: _by_itself(_lowered(way, {}, set(), tasks), pes) for way in op.expansions}
            yield op.origin, op.op_type, cycles
        for inner in (inner for way in op.expansions for inner in way.operators if len(inner.scopes) > 1):
            cycles = {name: _by_itself(_tasks(scopes, {}, pes), pes) for name, scopes in inner.scopes.items()}
            yield op.origin, inner.op_type, cycles


def _by_itself(least: Least, pes: int) -> int:
    return max(least.end, shared_cycles(least.work, pes))


def _lowered(way: OnnxAlternative, operands: Arrays, made: set[str], tasks: TasksOf) -> Least:
    """Return what an operator takes by one expansion: of each canonical operator in it the best of its own.

    Args:
        way: the expansion.
        operands: when they can be read.
        made: of these those that other operators make.
        tasks: what tasks take.
    """
    there, end, work, on_chip = dict(operands), 0, 0, _on_chip(way, made)
    for op in way.operators:
        choices = [tasks(scopes, there, on_chip) for scopes in op.scopes.values()]
        shared = set.intersection(*(set(choice.there) for choice in choices))  # the others are inside of one choice
        there |= {array: _soonest([choice.there[array] for choice in choices]) for array in shared}
        end = max(end, min(choice.end for choice in choices))
        work += min(choice.work for choice in choices)
    return Least(end, work, dict.fromkeys(way.results.values(), _FROM_OUTSIDE) | there)


def _tasks(scopes: Sequence[TaskScope], before: Arrays, pes: int) -> Least:
    """Return what tasks take that begin when what they read is there, as a stream where their order allows one."""
    there: dict[str, There] = {}
    ends, total = [0], 0
    for scope in scopes:
        begin = after = 0
        cycles = scope.written
        for array, can_stream in scope.reads:
            source, elements = there.get(array, before.get(array)), scope.iterations
            if source is not None and can_stream:
                begin, after = max(begin, source.begun), max(after, source.whole + 1)
                elements = shared_cycles(elements, source.writers)
            elif source is not None:
                begin = max(begin, source.whole)
            cycles = max(cycles, elements)
        work = cycles * scope.members
        end = max(begin + cycles, begin + shared_cycles(work, pes), after)
        ends.append(end)
        total += work
        own, other = There(begin if scope.can_send else end, end, scope.members), there.get(scope.write)
        if other is not None:  # two scopes write it: it is in memory
            whole = max(end, other.whole)
            own = There(whole, whole, scope.members + other.writers)
        there[scope.write] = own
    return Least(max(ends), total, there)


def _soonest(found: Sequence[There]) -> There:
    begun, whole, writers = zip(*found, strict=True)
    return There(min(begun), min(whole), max(writers))


def _undivided_work(way: OnnxAlternative, streams: set[str]) -> int:
    """Return the work by one expansion: all iterations of what reads memory, else what is written at least."""
    on_chip = _on_chip(way, streams)
    return sum(
        min(sum(_least(scope, on_chip) for scope in choice) for choice in op.scopes.values()) for op in way.operators
    )


def _on_chip(way: OnnxAlternative, streams: set[str]) -> set[str]:
    """Return the arrays that an operator may take from tasks, some of them given."""
    scopes = [scope for op in way.operators for choice in op.scopes.values() for scope in choice]
    stored = {scope.write for scope in scopes if scope.is_stored}
    return streams | {scope.write for scope in scopes if scope.write not in stored}


def _takes_slices(scope: TaskScope, on_chip: set[str]) -> bool:
    return scope.visits_once and {array for array, _ in scope.reads} <= on_chip


def _least(scope: TaskScope, on_chip: set[str]) -> int:
    each = min(scope.written, scope.iterations) if _takes_slices(scope, on_chip) else scope.iterations
    return each * scope.members


def shared_cycles(work: int, among: int) -> int:
    """Return the cycles of work that so many share evenly."""
    return -(-work // among)


Float64 = npt.NDArray[np.float64]

_HINTED_PART: Final = 20  # a hint saves at least one part in so many of the makespan


class ExpansionsAudit:
    """The audit for one model; what does not depend on the number of processing elements is computed once."""

    def __init__(self, known: KnownAlternatives | None) -> None:
        self._known = known
        self._work = {} if known is None else divided_work(known)
        self._bound_over = cache(lambda pes: 0 if known is None else bound_over(known, pes))

    def audit(self, where: str, summary: ExpansionsSummary | None, point: Point, graph: GraphFigures) -> None:
        """Compute the figures of a result anew.

        Args:
            where: path of the part in the report.
            summary: the part.
            point: the result.
            graph: what is scheduled.

        Raises:
            VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
        """
        if summary is None or self._known is None:
            expect(f"{where}: whether there is one", summary is not None, point.expansion_bound is not None)
            return
        is_chosen = point.is_saved or (point.selection is not None and point.selection.is_taken)
        bound = -(-sum(self._work.values()) // point.pes) if is_chosen else self._bound_over(point.pes)
        is_exact = point.scheduled.schedule.timing is Timing.EXACT
        makespan = max(point.scheduled.schedule.last_out.tolist(), default=0) if point.scheduled.ends else None
        gap = gap_above(bound, makespan, is_exact=is_exact)
        expect_figures(where, summary, lower_bound_cycles=bound, gap=gap)
        if makespan is not None and is_exact and not self._known.left_out:
            expect_at_least(f"{where}: makespan_cycles", makespan, bound, "lower_bound_cycles")
        hints = [] if is_chosen else _hints(self._known, point, makespan or 0)
        for at, hint, (operators, before, after) in expect_rows(f"{where}.hints", summary.hints, hints):
            expect_figures(at, hint, operators=operators, chosen_bound_cycles=before, hinted_bound_cycles=after)
        if makespan is not None and is_exact:
            gaps = _gaps(point, graph, self._work)
            _audit_gaps(f"{where}.operators", summary.operators, gaps, point.pes * makespan)
        else:
            expect(f"{where}.operators: their number", len(summary.operators), 0)


def _hints(known: KnownAlternatives, point: Point, makespan: int) -> list[tuple[int, int, int]]:
    """Return operators, cycles as chosen and as hinted of every hint, the largest saving first.

    Of an operator the outermost type that has a better expansion counts.
    """
    chosen = {(each.origin, each.op_type): each.name for each in point.variant.lowered.chosen}
    by_expansion: dict[tuple[str, str], list[tuple[int, int]]] = {}
    told: set[str] = set()
    for origin, op_type, cycles in alone(known, point.pes):
        taken = chosen.get((origin, op_type))
        if origin in told or taken is None or taken not in cycles:
            continue
        least = min(cycles.values())
        if cycles[taken] == least:
            continue
        told.add(origin)
        best = min((name for name, each in cycles.items() if each == least), key=natural_order)
        by_expansion.setdefault((op_type, best), []).append((cycles[taken], least))
    hints = []
    for each in by_expansion.values():
        before, after = (sum(cycles) for cycles in zip(*each, strict=True))
        hints.append((len(each), before, after))
    worth = [hint for hint in hints if _HINTED_PART * (hint[1] - hint[2]) >= makespan]
    return sorted(worth, key=lambda hint: hint[1] - hint[2], reverse=True)


Gap = tuple[int, int, int, float]  # least work, more work, waiting, idle


def _gaps(point: Point, graph: GraphFigures, least: Mapping[str, int]) -> dict[str, Gap]:
    """Return the four figures of every operator; what is idle in parts of a cycle."""
    schedule, dag = point.scheduled.schedule, graph.dag
    origins = list(dict.fromkeys([*least, *(scope.origin for scope in dag.scopes)]))
    number = {origin: place for place, origin in enumerate(origins)}
    tasks = np.flatnonzero(graph.is_task)
    operator = np.array([number[scope.origin] for scope in dag.scopes], dtype=np.int64)[dag.node_scope[tasks]]
    start, end = schedule.start[tasks], schedule.last_out[tasks]
    work, held = np.zeros((2, len(origins)), dtype=np.int64)
    np.add.at(work, operator, graph.work[tasks])
    np.add.at(held, operator, end - start)
    idle = np.bincount(operator, weights=_idle_beside(start, end, point.pes), minlength=len(origins)).tolist()
    return {
        origin: (least.get(origin, 0), int(work[at]) - least.get(origin, 0), int(held[at] - work[at]), idle[at])
        for at, origin in enumerate(origins)
    }


def _idle_beside(start: Int64, end: Int64, pes: int) -> Float64:
    """Return each task's share of the idle elements: all that run share them, of cycles without any those that follow.

    Args:
        start: of each task, shape [tasks].
        end: of each task, shape [tasks].
        pes: number of processing elements P.
    """
    marks = distinct(np.concatenate([np.zeros(1, dtype=np.int64), start, end]))
    running = np.searchsorted(np.sort(start), marks[:-1], "right") - np.searchsorted(np.sort(end), marks[:-1], "right")
    idle = (pes - running) * np.diff(marks).astype(np.float64)
    for step in np.flatnonzero(running == 0).tolist():
        idle[step + 1] += idle[step]
    share = np.divide(idle, running, out=np.zeros(len(idle)), where=running > 0)
    before = np.concatenate([np.zeros(1), np.cumsum(share)])
    beside: Float64 = before[np.searchsorted(marks, end)] - before[np.searchsorted(marks, start)]
    return beside


def _audit_gaps(where: str, found: tuple[OperatorGapSummary, ...], expected: Mapping[str, Gap], total: int) -> None:
    """Hold operators against their figures; idle cycles are whole, so that all together are the whole machine."""
    for number, gap in enumerate(found):
        at, (least, more, waiting, idle) = f"{where}[{number}]", expected.get(gap.operator, (0, 0, 0, 0.0))
        expect_figures(at, gap, least_work_cycles=least, more_work_cycles=more, waiting_cycles=waiting)
        if abs(gap.idle_cycles - idle) > 1 + total * ROUNDING:
            raise VerificationError(f"{at}.idle_cycles: found {gap.idle_cycles} against about {idle:.2f}")
    named = {gap.operator for gap in found}
    lost = [name for name, gap in expected.items() if name not in named and (any(gap[:3]) or gap[3] > 1)]
    expect(f"{where}: their number", len(named), len(found) + len(lost))
    expect(f"{where}: all figures together", sum(gap.least_work_cycles + gap.gap_cycles for gap in found), total)
