"""The audit of the whole report on a model, just before it leaves, and of its part on the automatic choice."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import floor, inf
from typing import NamedTuple

import numpy as np

from dfcompile.audit.comparing import ROUNDING, audit_derived, expect, expect_at_least, expect_figures, expect_rows
from dfcompile.audit.expansions import ExpansionsAudit, shared_cycles
from dfcompile.audit.graph_figures import Graph, GraphFigures
from dfcompile.audit.mapping import IdealAudit, audit_mapping
from dfcompile.audit.schedules import audit_schedule
from dfcompile.audit.traffic import TrafficAudit
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.choosing import Estimate, Selection
from dfcompile.dfmodel_backend.check.machines import PER_S, dram_bytes_per_ns, on_chip
from dfcompile.dfmodel_backend.machine.system import UNLIMITED_GB_PER_S
from dfcompile.distinct import distinct
from dfcompile.driver import Exploration
from dfcompile.frontend import Coverage
from dfcompile.lowering.execution.verification import Array, Outputs
from dfcompile.report.figures import MicroBatchesSummary, RepetitionSummary, Report, VerificationSummary
from dfcompile.report.operator_figures import AutomaticSummary, LoweringSummary, RivalsSummary
from dfcompile.study import Point
from dfcompile.variants import Variant

_LOST = 5e-13  # of a number with twelve digits
_TOLD = 1e12  # whole numbers below it are told by twelve digits
_TWELVE_DIGITS = 1e-11  # as far apart as two of them are that are rounded once each


def audit_report(report: Report, exploration: Exploration) -> None:
    """Compute every number of a model's report anew from what the stages handed over.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    audit_derived("report", report)
    model, nodes = report.model, exploration.variants[0].lowered.nodes
    ways = Counter(node.coverage for node in nodes)  # every one has to be accounted for
    expect_figures("model", model, nodes=len(nodes), nodes_costed=len(nodes), nodes_folded=ways[Coverage.FOLDED])
    expect_figures("model", model, nodes_as_tasks=ways[Coverage.COSTED], nodes_as_views=ways[Coverage.VIEW])
    expansions = {id(one): ExpansionsAudit(one) for one in (point.alternatives for point in exploration.points)}
    traffic = TrafficAudit(exploration.model.program, exploration.plans)
    ideals = IdealAudit(exploration.alternatives, traffic.proved_bytes)
    graphs: dict[CanonicalDag, GraphFigures] = {}
    for where, result, point in expect_rows("results", report.results, exploration.points):
        graph = graphs.setdefault(point.variant.dag, GraphFigures(point.variant.dag))
        expect(f"{where}.pes", result.pes, point.all_pes)
        audit_schedule(f"{where}.schedule", result.schedule, point.scheduled, graph)
        audit_lowerings(f"{where}.lowerings", result.lowerings, point.variant)
        expansions[id(point.alternatives)].audit(f"{where}.over_expansions", result.over_expansions, point, graph)
        audit_automatic(f"{where}.automatic", result.automatic, point)
        traffic.audit(f"{where}.traffic", result.traffic, point, graph)
        audit_verification(f"{where}.verification", result.verification, point.variant)
        audit_repetition(f"{where}.repetition", result.repetition, point, exploration.options.repeat, graph)
        if result.mapping is not None:
            cycles = result.mapping.time_s * point.system.accelerator.frequency_ghz * PER_S
            audit_makespan(f"{where}.makespan_cycles", result.makespan_cycles, cycles)
            audit_mapping(f"{where}.mapping", result.mapping, point)
            dims = exploration.options.dims
            _audit_micro_batches(f"{where}.micro_batches", result.micro_batches, point, dims, traffic.proved_bytes)
            ideals.audit(f"{where}.mapping", result.mapping, point)


def audit_makespan(where: str, reported: int | None, cycles: float) -> None:
    """Hold a makespan against the cycles that it is rounded up from, as far as twelve digits tell them.

    Raises:
        VerificationError: it is another.
    """
    # Rounded up, unless they are above a whole number by what is lost in twelve digits.
    whole = floor(cycles * (1 - _LOST)) + 1 if cycles else 0
    expect(where, reported, whole, 0 if cycles < _TOLD else _TWELVE_DIGITS)


def _audit_micro_batches(
    where: str, found: MicroBatchesSummary | None, point: Point, dims: Mapping[str, int], proved_bytes: int
) -> None:
    """Hold micro-batches against the size of the model, and what groups of elements have against the chip."""
    ran, runs, group = point.micro_batches, point.attained.runs, point.system
    if found is None or ran is None:
        expect(f"{where}: whether there are some", found is not None, ran is not None)
        expect(f"{where}: runs", runs, 1)
        return
    expect_figures(where, found, dimension=ran.dimension, size=ran.size, count=runs, at_once=ran.at_once)
    expect(f"{where}: all indices", found.count * found.size, dims[ran.dimension])
    expect(f"{where}.count", ran.count, runs)
    expect(f"{where}: bytes that are proved", ran.proved_bytes, proved_bytes)
    whole, groups = ran.system, ran.at_once
    expect_at_least(f"{where}: processing elements", ran.pes, groups * point.pes, "those of all groups")
    for name, chip, one in (
        ("SRAM", on_chip(whole.accelerator.sram, whole), on_chip(group.accelerator.sram, group)),
        ("DRAM bandwidth", dram_bytes_per_ns(whole), dram_bytes_per_ns(group)),
    ):
        if not (name == "DRAM bandwidth" and chip >= UNLIMITED_GB_PER_S):
            expect_at_least(f"{where}: {name}", chip, groups * one, "that of all groups", ROUNDING)


def audit_lowerings(where: str, found: Sequence[LoweringSummary], variant: Variant) -> None:
    """Add the work of groups of operators anew, and hold the expansions of each against those in effect.

    Raises:
        VerificationError: naming the figure, or an operator that is in two groups, or in one that is not its own.
    """
    dag, chosen = variant.dag, {(one.origin, one.op_type, one.name) for one in variant.lowered.chosen}
    places: dict[str, int] = {}
    of_scope = np.array([places.setdefault(scope.origin, len(places)) for scope in dag.scopes], dtype=np.int64)
    of_task, work = of_scope[dag.node_scope[dag.is_computational]], dag.work[dag.is_computational]
    seen: set[str] = set()
    for number, group in enumerate(found):
        at = f"{where}[{number}]"
        own = [places[origin] for origin in group.operators if origin in places]
        expect_figures(at, group, work_cycles=int(work[np.isin(of_task, own)].sum()))
        expect(f"{at}: operators of other groups", len(seen.intersection(group.operators)), 0)
        seen.update(group.operators)
        told = {
            (origin, op_type, name)
            for origin in group.operators
            for op_type, names in group.expansions.items()
            for name in names.split("+")
        }
        expect(f"{at}: expansions that were not chosen", len(told - chosen), 0)


def audit_verification(where: str, summary: VerificationSummary | None, variant: Variant) -> None:
    """Compare the outputs of the lowered model and of the original anew.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    deviation, effect = variant.deviation, variant.effect_of_inputs
    if summary is None or deviation is None:
        expect(f"{where}: whether there is one", summary is not None, deviation is not None)
        return
    largest, part = (_largest(deviation.outputs, are_parts=are_parts) for are_parts in (False, True))
    change = None if effect is None else _largest(effect.outputs, are_parts=True, are_finite=True)
    expect_figures(where, summary, ROUNDING, max_abs_error=largest, max_rel_error=part, effect_of_inputs=change)


def _largest(outputs: Outputs, *, are_parts: bool, are_finite: bool = False) -> float:
    """Return the largest difference of two elements at one place.

    Args:
        outputs: each as it should be, and as it was found.
        are_parts: of the largest finite value of the same output, where that is not 0.
        are_finite: whether elements count only where both are finite; an output of another shape is another one.
    """
    largest = 0.0
    for expected, found in outputs:
        if expected.shape != found.shape:
            largest = max(largest, 1.0)
            continue
        exact, ours = _wide(expected), _wide(found)
        counted = np.isfinite(exact)
        differs = ~((exact == ours) | (np.isnan(exact) & np.isnan(ours)))
        if are_finite:
            counted &= np.isfinite(ours)
            differs &= counted
        with np.errstate(invalid="ignore"):
            difference = float(np.abs(ours[differs] - exact[differs]).max(initial=0.0))
        scale = float(np.abs(exact[counted]).max(initial=0.0)) if are_parts else 0.0
        largest = max(largest, difference / scale if scale else difference)
    return largest


def _wide(values: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.complex128]]:
    return np.asarray(values).astype(np.complex128)


def audit_repetition(
    where: str, summary: RepetitionSummary | None, point: Point, repeats: int, graph: GraphFigures
) -> None:
    """Compute the figures of a repetition anew.

    Its interval is what was found: with it no more tasks may be under way than there are processing elements.

    Args:
        where: path of the part in the report.
        summary: the part.
        point: with the repetition and the schedule of one iteration on all processing elements.
        repeats: that were asked for.
        graph: what is scheduled.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    repetition = point.repetition
    if summary is None or repetition is None:
        expect(f"{where}: whether there is one", summary is not None, repeats > 1)
        return
    schedule, interval = repetition.schedule, repetition.interval_cycles
    once = max(schedule.last_out.tolist(), default=0)
    busy = sum((schedule.last_out - schedule.start)[graph.is_task].tolist())
    least = max(-(-busy // point.pes), 1) if once else 0
    alone = max(point.scheduled.schedule.last_out.tolist(), default=0)
    begun = range(0, once, interval) if interval else range(1)
    makespan = once + interval * (repeats - 1)
    expect_figures(where, summary, repeats=repeats, pes_each=schedule.pes, in_flight=min(repeats, len(begun)))
    expect_figures(where, summary, interval_cycles=interval, least_interval_cycles=least)
    expect_figures(where, summary, makespan_cycles=makespan, in_sequence_cycles=repeats * alone)
    expect_figures(where, summary, io_elements=repeats * graph.io_elements)
    most = most_under_way(schedule.start[graph.is_task], schedule.last_out[graph.is_task], interval)
    expect_at_least(f"{where}.interval_cycles: processing elements", point.pes, most, "tasks under way at once")
    expect_at_least(f"{where}.interval_cycles", summary.interval_cycles, least, "least_interval_cycles")


def most_under_way(start: Int64, end: Int64, interval: int) -> int:
    """Return how many tasks are under way at once, at most, if iterations follow one another without end.

    Then every cycle of an interval is like the same cycle of any other: a task is under way in it once for each of its
    iterations that has begun by then and has not ended.
    """
    if not interval:
        return 0
    cycles = distinct(start % interval)  # in no other are there more than in the one before
    begun, ended = (np.searchsorted(np.sort(times % interval), cycles, "right") for times in (start, end))
    return int((begun - ended).max(initial=0) + (end // interval).sum() - (start // interval).sum())


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
        least.append(max(longest, shared_cycles(total, pes)))
    path = _longest_path(estimate, least)
    return Range(tasks, work, max(path, shared_cycles(work, pes)), shared_cycles(begun, pes) + longest_together)


def _longest_path(estimate: Estimate, least: list[int]) -> int:
    """Return when the last family can end if each has all elements: a cycle after a stream, at least.

    If slices of arrays are made and used up one by one, a task after who makes them begins or ends.
    """
    families = estimate.families
    pairs = [(each.number, number) for number, family in enumerate(families) for each in family.producers]
    source, target = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    start, end = [0] * len(families), [0] * len(families)
    shortest = [max(min(family.tasks.whole, family.tasks.last), 1) for family in families]
    for number in Graph(len(families), source, target).order.tolist():
        producers = families[number].producers
        ready, behind = [], []
        for each in producers:
            if each.streams:
                ready.append(start[each.number] + 1)
                behind.append(end[each.number] + 1)
            elif each.slices > 1:
                ready.append(start[each.number] + shortest[each.number])
                behind.append(end[each.number] + shortest[number])
            else:
                ready.append(end[each.number])
        start[number] = max(ready, default=0)
        end[number] = max([start[number] + least[number], *behind])
    return max(end, default=0)


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
    excluded = sum(len(each.excluded) for each in selection.operators)
    expect_figures(where, summary, options_excluded=excluded)
    options = [(each.origins[0], option) for each in selection.operators for option in each.known]
    for at, found, (origin, option) in expect_rows(f"{where}.options", summary.options, options):
        known = range_of(option.alone, point.pes)
        expect_figures(at, found, pieces=option.pieces, rest=option.rest)
        expect_figures(at, found, tasks=known.tasks, work_cycles=known.work_cycles)
        expect_figures(at, found, least_cycles=known.least_cycles, alone_cycles=option.alone.cycles)
        _expect_in_range(f"{at}.alone_cycles", option.alone.cycles, known)
        granularity = selection.sketch.candidate.granularity
        taken = granularity.pieces_of(origin), granularity.rest_of(origin), dict(selection.expansions.get(origin, {}))
        is_chosen = taken == (option.pieces, option.rest, dict(option.expansions))
        expect_figures(at, found, is_chosen=is_chosen)


def _expect_in_range(where: str, cycles: int, known: Range) -> None:
    expect_at_least(where, cycles, known.least_cycles, "work and paths of tasks")
    expect_at_least(f"{where}: all work, and the longest tasks", known.most_cycles, cycles, "the estimate")


def _audit_rivals(where: str, found: RivalsSummary | None, selection: Selection, point: Point) -> None:
    """Count the uniform choices: scheduled, excluded by what is known of them or by the schedule made, or left."""
    if found is None or not selection.is_taken:
        expect(f"{where}: whether there are some", found is not None, selection.is_taken)
        return
    makespan = max(point.scheduled.schedule.last_out.tolist(), default=0) if point.scheduled.ends else inf
    counts = {"scheduled": 0, "excluded": 0, "estimated": selection.unseen}
    for rival in selection.rivals:
        if rival.score is not None:
            counts["scheduled"] += 1
        elif rival.is_excluded or range_of(rival.sketch.estimate, point.pes).least_cycles >= makespan:
            counts["excluded"] += 1
        else:
            counts["estimated"] += 1
    expect_figures(where, found, **counts, is_quick=selection.limits.is_quick)
