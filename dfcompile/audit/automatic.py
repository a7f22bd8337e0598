"""The audit of the part on the automatic choice: its options, the uniform choices beside it, and what is estimated."""

from typing import NamedTuple

import numpy as np

from dfcompile.audit.comparing import expect, expect_at_least, expect_figures, expect_rows
from dfcompile.audit.graph_figures import Graph
from dfcompile.choosing import Estimate, OperatorOption, Selection
from dfcompile.driver import Point
from dfcompile.report.automatic_figures import AutomaticSummary, OptionSummary, RivalsSummary


class Range(NamedTuple):
    """What is known of an estimate without making it.

    Attributes:
        tasks: their number.
        work_cycles: of all tasks.
        least_cycles: that no schedule takes less than: all work shared, or a path of families on all elements.
        most_cycles: that tasks take which are put where an element gets free: all work shared, and then on a path of
            families the longest task of each.
    """

    tasks: int
    work_cycles: int
    least_cycles: int
    most_cycles: int


def range_of(estimate: Estimate, pes: int) -> Range:
    """Return the range of an estimate.

    Args:
        estimate: with its families.
        pes: number of processing elements P.
    """
    tasks = work = begun = longest_together = 0
    least: list[int] = []
    for family in estimate.families:
        members, row = family.tasks.members, family.tasks.row
        rows = members // row
        total = (members - rows) * family.tasks.whole + rows * family.tasks.last
        longest = max(family.tasks.whole, family.tasks.last, 1)
        tasks += members
        work += total
        begun += members * longest
        longest_together += longest + 1  # whoever takes a stream ends a cycle later
        least.append(max(longest, _shared(total, pes)))
    path = _longest_path(estimate, least)
    return Range(tasks, work, max(path, _shared(work, pes)), _shared(begun, pes) + longest_together)


def _longest_path(estimate: Estimate, least: list[int]) -> int:
    """Return when the last family can end if each has all elements: a cycle after a stream, at least."""
    families = estimate.families
    pairs = [(each.number, number) for number, family in enumerate(families) for each in family.producers]
    source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    start, end = [0] * len(families), [0] * len(families)
    for number in Graph(len(families), source, target).order:
        producers = families[number].producers
        ready = (start[each.number] + 1 if each.streams else end[each.number] for each in producers)
        start[number] = max(ready, default=0)
        behind = (end[each.number] + 1 for each in producers if each.streams)
        end[number] = max([start[number] + least[number], *behind])
    return max(end, default=0)


def _shared(work: int, among: int) -> int:
    return -(-work // among)


def audit_automatic(where: str, summary: AutomaticSummary | None, point: Point) -> None:
    """Compute the figures of a choice anew.

    Tasks, work and bounds follow from the families of tasks. Where a family would be placed is not worked out again:
    estimates are those of the choice, and between bounds.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is beyond.
    """
    selection = point.selection
    if summary is None or selection is None:
        expect(f"{where}: whether there is one", summary is not None, selection is not None)
        return
    default = selection.default
    estimated, published = selection.sketch.estimate.cycles, None if default is None else default.estimate.cycles
    expect_figures(where, summary, is_taken=selection.is_taken)
    expect_figures(where, summary, estimated_cycles=estimated, published_cycles=published)
    for name, sketch in (("estimated_cycles", selection.sketch), ("published_cycles", default)):
        if sketch is not None:
            _expect_in_range(f"{where}.{name}", sketch.estimate.cycles, range_of(sketch.estimate, point.pes))
    _audit_rivals(f"{where}.rivals", summary.rivals, selection, point)
    options = [(each.origins[0], option) for each in selection.operators for option in each.known]
    for at, found, (origin, option) in expect_rows(f"{where}.options", summary.options, options):
        _audit_option(at, found, option, point.pes)
        pieces = selection.sketch.candidate.granularity.pieces_of(origin)
        is_chosen = (pieces, dict(selection.expansions.get(origin, {}))) == (option.pieces, dict(option.expansions))
        expect_figures(at, found, is_chosen=is_chosen)


def _audit_option(where: str, found: OptionSummary, option: OperatorOption, pes: int) -> None:
    known = range_of(option.alone, pes)
    expect_figures(where, found, pieces=option.pieces, tasks=known.tasks, work_cycles=known.work_cycles)
    expect_figures(where, found, least_cycles=known.least_cycles, alone_cycles=option.alone.cycles)
    _expect_in_range(f"{where}.alone_cycles", option.alone.cycles, known)


def _expect_in_range(where: str, cycles: int, known: Range) -> None:
    expect_at_least(where, cycles, known.least_cycles, "work and paths of tasks")
    expect_at_least(f"{where}: all work, and the longest tasks", known.most_cycles, cycles, "the estimate")


def _audit_rivals(where: str, found: RivalsSummary | None, selection: Selection, point: Point) -> None:
    """Count the uniform choices: scheduled, excluded by what is known of them or by the schedule made, or left."""
    if found is None or not selection.is_taken:
        expect(f"{where}: whether there are some", found is not None, selection.is_taken)
        return
    makespan = max(point.scheduled.schedule.last_out.tolist(), default=0) if point.scheduled.ends else None
    counts = {"scheduled": 0, "excluded": 0, "estimated": selection.unseen}
    for rival in selection.rivals:
        if rival.score is not None:
            counts["scheduled"] += 1
        elif rival.is_excluded or (
            makespan is not None and range_of(rival.sketch.estimate, point.pes).least_cycles >= makespan
        ):
            counts["excluded"] += 1
        else:
            counts["estimated"] += 1
    expect_figures(where, found, **counts, is_quick=selection.limits.is_quick)
