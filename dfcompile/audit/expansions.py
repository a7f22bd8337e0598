"""The audit of the part on other expansions: the bound over them, hints, what separates operators from the ideal."""

from collections.abc import Mapping
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from dfcompile.audit.alternatives import alone, bound_over, divided_work
from dfcompile.audit.comparing import ROUNDING, expect, expect_at_least, expect_figures, expect_rows
from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.audit.schedule import gap_above
from dfcompile.canonical_dag.dag import Int64
from dfcompile.distinct import distinct
from dfcompile.driver import Point
from dfcompile.errors import VerificationError
from dfcompile.expansion_names import natural_order
from dfcompile.lowering import KnownAlternatives
from dfcompile.options import Timing
from dfcompile.report.figures import ExpansionsSummary
from dfcompile.report.operator_figures import OperatorGapSummary

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
