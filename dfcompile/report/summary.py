"""Sums up what the driver found out as a report, and what mappings move beside the least possible."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from math import ceil, inf
from types import MappingProxyType

from dfcompile import dfmodel_backend as backend
from dfcompile.canonical_dag import NO_KERNEL, CanonicalDag
from dfcompile.choosing import OperatorOptions, Selection
from dfcompile.driver import Exploration
from dfcompile.errors import VerificationError
from dfcompile.expansion_names import PUBLISHED
from dfcompile.frontend import Coverage
from dfcompile.io_bounds.fusion.residency import ResidencyPlan
from dfcompile.io_bounds.operators import BoundedModel
from dfcompile.lowering import KnownAlternatives
from dfcompile.lowering.alternatives.bound import ExpansionBound, expansion_hints, least_work, longest_chain
from dfcompile.micro_batches import RunMicroBatches
from dfcompile.options import Options
from dfcompile.records import replace
from dfcompile.report import figures as report
from dfcompile.report import mapping_figures, operator_figures
from dfcompile.report import schedule_summary as schedules
from dfcompile.report.figure import NS_PER_S, filled
from dfcompile.report.operator_figures import lowering_summaries
from dfcompile.report.plain_values import rounded
from dfcompile.scheduler.evaluation import makespan_gap
from dfcompile.scheduler.operator_times import operator_times
from dfcompile.study import Point
from dfcompile.traffic_plans import TrafficPlans

ELSEWHERE = "(other)"  # what no operator of the model moves


def traffic_summary(plans: TrafficPlans, point: Point) -> mapping_figures.TrafficSummary:
    """Return what the mapping of a point moves beside the least.

    Raises:
        VerificationError: it moves less than is proved to be necessary.
    """
    size = int(point.sram_bytes) * point.attained.chips
    plan = plans.of(size)
    moved, proved = point.attained.dram_bytes, plans.model.compulsory_bytes
    least = None if plan is None else plan.traffic_bytes
    if moved < proved:
        raise VerificationError(f"traffic: found {moved} bytes moved against {proved} proved to be necessary")
    return filled(
        mapping_figures.TrafficSummary,
        moved_bytes=moved,
        proved_bytes=proved,
        least_bytes=least,
        least_is_exact=least is not None and least <= moved and plan is not None and plan.is_exact,
        buffer_bytes=size or None,
        schedule_ratio=point.attained.runs * point.scheduled.figures.io_bytes / proved if proved else None,
        operators=tuple(_operators(plans.merged, point.attained, plan)),
    )


def _operators(
    merged: BoundedModel, attained: backend.TaskMapping, plan: ResidencyPlan | None
) -> Iterator[mapping_figures.OperatorTrafficSummary]:
    owner = {name: op.name for op in merged.operators for name in (op.name, *op.within)}
    least: Counter[str] = Counter()
    for share in () if plan is None else plan.operators:
        least[owner[share.name]] += share.traffic_bytes
    moved: Counter[str] = Counter()
    for origin, count in _moved_by_origin(attained):
        moved[owner.get(origin, ELSEWHERE)] += count
    names = dict.fromkeys((*owner.values(), *moved))
    for name in sorted(names, key=lambda name: (least[name] - moved[name], name)):
        if moved[name] or least[name]:
            yield mapping_figures.OperatorTrafficSummary(name, moved[name], least[name], moved[name] - least[name])


def _moved_by_origin(attained: backend.TaskMapping) -> Iterator[tuple[str, int]]:
    """Yield bytes with the operator that moves them: what is written by the maker, what is read by the first reader.

    On several chips all move what one does.
    """
    makers, readers = _neighbours(attained.machine_dag)
    times = attained.chips * attained.runs
    of_kernel = {kernel.name: kernel.origin for kernel in attained.machine_dag.kernels}
    for configuration in attained.configurations:
        present = dict.fromkeys(of_kernel.get(name, "") for name in configuration.kernels)
        ranks = {origin: rank for rank, origin in enumerate(present)}
        for store in configuration.stores:
            reading = readers.get(store.name, {})
            if len(reading) < len(present):  # either may have thousands
                first = min(ranks.keys() & reading.keys(), key=ranks.__getitem__, default=None)
            else:
                first = next((origin for origin in present if origin in reading), None)
            yield next(iter(reading), "") if first is None else first, store.dram_read_bytes * times
            yield makers.get(store.name, ""), store.dram_write_bytes * times


def _neighbours(dag: CanonicalDag) -> tuple[dict[str, str], dict[str, dict[str, None]]]:
    """Return the operator that writes each store, and those that read it; a store is an array or a scope of tasks."""
    makers: dict[str, str] = {}
    readers: dict[str, dict[str, None]] = {}
    sources, targets = dag.node_scope[dag.edge_source], dag.node_scope[dag.edge_target]
    for source, target in dict.fromkeys(zip(sources.tolist(), targets.tolist(), strict=True)):
        writer, reader = dag.scopes[source], dag.scopes[target]
        if writer.kernel != NO_KERNEL:
            makers.setdefault(writer.name, dag.kernels[writer.kernel].origin)
            makers.setdefault(reader.name, dag.kernels[writer.kernel].origin)
        if reader.kernel != NO_KERNEL:
            readers.setdefault(writer.name, {})[dag.kernels[reader.kernel].origin] = None
    return makers, readers


TRAFFIC_ALONE = report.AssumptionSummary(
    "ideal",
    "least traffic alone: the work and the chains of all expansions are not known",
    "--passes, --volumes, --granularity, or an expansion that failed",
)


class Ideals:
    """The ideals of a model, on any machine."""

    def __init__(self, alternatives: KnownAlternatives | None, proved_bytes: int) -> None:
        """Take what the known expansions make of the model, if it is known, and the bytes that every one of them moves.

        An expansion of a third party that failed may do with less: then nothing is known but the bytes.
        """
        known = None if alternatives is None or alternatives.left_out else alternatives
        self._chain = None if known is None else cache(partial(longest_chain, known))
        self._work = 0 if known is None else sum(least_work(known).values())
        self._proved_bytes = proved_bytes

    def of(self, point: Point) -> tuple[mapping_figures.IdealSummary, float]:
        """Return the terms of the ideal on all chips at hand, and its time in seconds.

        On several chips no chain is known: their shares may be without what follows from constants.
        """
        system, chips = point.whole_system, point.chips
        chip = system.accelerator
        memory_s = self._proved_bytes / (system.dram_gb_per_s * chips * NS_PER_S)
        period_s = 1 / (chip.frequency_ghz * NS_PER_S)
        compute_s = chain_s = None
        if point.least_work is not None and self._chain is not None:
            word = chip.lanes_per_core * chip.stages_per_core
            compute_s = -(-self._work // (word * chip.cores * chips)) * period_s
            chain_s = None if chips > 1 else self._chain(word) * period_s
        terms = {"compute": compute_s, "memory": memory_s, "chain": chain_s}
        bound_by = max(terms, key=lambda name: terms[name] or 0.0)
        # Work and chain are both of the processing elements, so the longer one counts.
        at_work_s = max(compute_s or 0.0, chain_s or 0.0)
        time_s = point.mapping.options.overlap.time_ns(at_work_s, memory_s, 0.0)
        return mapping_figures.IdealSummary(bound_by, compute_s, memory_s, chain_s), time_s


def summarize(exploration: Exploration) -> report.Report:
    """Return the report of a run."""
    lowered = exploration.variants[0].lowered
    ways = Counter(node.coverage for node in lowered.nodes)
    counts = (ways[Coverage.COSTED], ways[Coverage.VIEW], ways[Coverage.FOLDED])
    model = report.ModelSummary(lowered.name, len(lowered.nodes), sum(counts), *counts)
    ideals = Ideals(exploration.alternatives, exploration.plans.model.compulsory_bytes)
    found = tuple((point, *ideals.of(point)) for point in exploration.points)
    mapped = ((point, _mapping(point, ideal, time_s)) for point, ideal, time_s in found)
    results = tuple(_result(point, mapping, exploration.plans) for point, mapping in mapped)
    ideal = [] if all(ideal.compute_s is not None for _, ideal, _ in found) else [TRAFFIC_ALONE]
    types = dict.fromkeys(name for each in exploration.variants for name in each.lowered.complex_types)
    own = _assumptions(exploration.options, exploration.points)
    assumptions = (*own, *ideal, *schedules.complex_assumptions(types))
    return report.Report(model, results, assumptions, exploration.warnings)


def _result(point: Point, mapping: mapping_figures.MappingSummary, plans: TrafficPlans) -> report.Result:
    variant, bound, figures = point.variant, point.expansion_bound, point.scheduled.figures
    cycles = point.attained.time_s * point.system.accelerator.frequency_ghz * NS_PER_S
    verification = None
    if variant.deviation is not None:
        effect = None if variant.effect_of_inputs is None else variant.effect_of_inputs.relative
        verification = filled(report.VerificationSummary, variant.deviation, effect_of_inputs=effect)
    repetition, repeated = None, point.repetition
    if repeated is not None:
        once = point.scheduled.schedule.makespan_cycles, figures.io_elements
        in_sequence, elements = (repeated.repeats * each for each in once)
        repetition = filled(report.RepetitionSummary, repeated, in_sequence_cycles=in_sequence, io_elements=elements)
    return report.Result(
        pes=point.all_pes,
        expansions=variant.expansions,
        makespan_cycles=ceil(rounded(cycles)),  # rounded up beyond the digits that a report has
        schedule=schedules.schedule_summary(point.scheduled, variant.scheduling.depths),
        lowerings=lowering_summaries(variant.offered, variant.dag),
        over_expansions=None if bound is None else _over_expansions(bound, point),
        automatic=None if point.selection is None else automatic_summary(point.selection, figures.makespan_cycles),
        repetition=repetition,
        mapping=mapping,
        traffic=traffic_summary(plans, point),
        verification=verification,
        micro_batches=None if point.micro_batches is None else filled(report.MicroBatchesSummary, point.micro_batches),
    )


def _over_expansions(bound: ExpansionBound, point: Point) -> report.ExpansionsSummary:
    variant, figures = point.variant, point.scheduled.figures
    hints = []
    for hint in expansion_hints(bound, variant.lowered.chosen, figures.makespan_cycles or 0):
        rule = f"{hint.op_type}={hint.name}"
        rules = (rule,) if hint.is_for_all else tuple(f"{origin}:{rule}" for origin in hint.origins)
        hints.append(filled(report.HintSummary, hint, expand=rules, operators=len(hint.origins)))
    gap = makespan_gap(bound.cycles, figures.makespan_cycles, is_exact=figures.is_exact)
    gaps: tuple[operator_figures.OperatorGapSummary, ...] = ()
    if point.least_work is not None and figures.makespan_cycles is not None and figures.is_exact:
        gaps = operator_figures.operator_gaps(operator_times(variant.dag, point.scheduled.schedule), point.least_work)
    return report.ExpansionsSummary(bound.cycles, gap, tuple(hints), gaps)


def _mapping(point: Point, ideal: mapping_figures.IdealSummary, ideal_time_s: float) -> mapping_figures.MappingSummary:
    streams, attained = point.mapping, point.attained
    figures = streams.figures
    perfect = filled(mapping_figures.PerfectStreamsSummary, streams, figures, configs=len(figures.configs))
    return filled(
        mapping_figures.MappingSummary,
        attained,
        chips_available=point.chips,
        ideal_time_s=ideal_time_s,
        configs=len(attained.configurations),
        utilization=_utilization(streams, attained, point.pes / point.all_pes),
        sharding=tuple(_layouts(point)),
        kernels=kernel_groups(attained.kernels, attained.chips),
        ideal=ideal,
        perfect_streams=perfect,
    )


def kernel_groups(
    kernels: Iterable[backend.KernelFigures], chips: int
) -> tuple[mapping_figures.KernelGroupSummary, ...]:
    """Return the kernels of a mapping, equal ones together, in the order of the first of them.

    Args:
        kernels: in order of execution.
        chips: that share them.
    """
    groups: dict[mapping_figures.KernelGroupSummary, list[str]] = {}
    for one in kernels:
        received = one.received_bytes / chips
        alone = filled(mapping_figures.KernelGroupSummary, one, kernels=(), count=1, network_bytes=received)
        groups.setdefault(alone, []).append(one.name)
    return tuple(replace(alone, kernels=tuple(names), count=len(names)) for alone, names in groups.items())


def _utilization(streams: backend.Mapping, attained: backend.TaskMapping, part: float) -> float:
    """Return that of perfect streams, which do the same operations on chips of the same kind, in another time.

    Args:
        streams: perfect ones.
        attained: the mapping.
        part: of the processing elements that either has.
    """
    if not attained.time_s:
        return 0.0
    one = streams.figures.utilization * streams.figures.time_s * streams.chips
    return one * attained.runs / (attained.time_s * attained.chips) * part


def _layouts(point: Point) -> Iterator[mapping_figures.LayoutSummary]:
    """Yield how chips hold arrays, configuration by configuration; kernels that prepare weights are in none."""
    attained = point.attained
    number = {name: at for at, each in enumerate(attained.configurations) for name in each.kernels}
    layouts = backend.tensor_layouts(point.variant.dag, dict(attained.sharding), attained.network_chips)
    for each in sorted((each for each in layouts if each.kernel in number), key=lambda each: number[each.kernel]):
        access = "written" if each.is_written else "read"
        yield filled(mapping_figures.LayoutSummary, each, configuration=number[each.kernel], access=access)


def _lowering_assumptions(options: Options) -> tuple[report.AssumptionSummary, ...]:
    expansions, granularity = "expansions that are not named", "granularity of tasks"
    if options.choice is not None:
        return tuple(report.AssumptionSummary(what, "as saved", "--choice") for what in (expansions, granularity))
    chosen = f"chosen per number of PEs, {options.objective} first" if options.expand.chooses else "published"
    others = "chosen per operator" if options.expand.chooses else "declared"
    said = ", ".join((options.granularity.every or others, *options.granularity.own))
    found = ((expansions, chosen, "--expand"), (granularity, said, "--granularity"))
    return tuple(report.AssumptionSummary(*each) for each in found)


def _assumptions(options: Options, points: Sequence[Point]) -> tuple[report.AssumptionSummary, ...]:
    """What schedules rest on, then what mappings rest on; what all results share is said once."""
    is_before_passes = any(point.selection is not None and point.selection.is_before_passes for point in points)
    passes = [("expansions were chosen", "for the model before its passes: it is large")] * is_before_passes
    applied = (one for point in points for one in point.variant.lowered.applied)
    passes += [(f"pass {one.name!r}", f"{one.before} {one.of} became {one.after}") for one in applied]
    found = [
        schedules.PROCESSING_ELEMENT,
        report.AssumptionSummary("volumes of edges between tasks", options.volumes, "--volumes"),
        *_lowering_assumptions(options),
        *(report.AssumptionSummary(*each, "--passes") for each in passes),
        *schedules.schedule_assumptions(point.scheduled for point in points),
    ]
    found += [_of_micro_batches(point.micro_batches) for point in points if point.micro_batches is not None]
    mapped = (each for point in points for each in (*point.attained.assumptions, *point.mapping.assumptions))
    # Every result says how many PEs it has.
    found += [filled(report.AssumptionSummary, each) for each in mapped if each.source != "--pes"]
    return tuple(dict.fromkeys(found))


def _of_micro_batches(ran: RunMicroBatches) -> report.AssumptionSummary:
    runs = f"{ran.count} of {ran.dimension}={ran.size}, {ran.at_once} at once"
    told = f"{runs}: none needs results of another, each reads all weights; schedule and operators are of one"
    return report.AssumptionSummary(f"micro-batches on {ran.pes} PEs", told, "--micro-batches, --dim")


def automatic_summary(selection: Selection, makespan_cycles: int | None) -> operator_figures.AutomaticSummary:
    """Return what was chosen, what it was compared with, and what else each operator could be.

    Args:
        selection: the choice.
        makespan_cycles: of the schedule that was made of it, if it was taken.
    """
    sketch, default = selection.sketch, selection.default
    return operator_figures.AutomaticSummary(
        is_taken=selection.is_taken,
        # Without a rule, the command that repeats the choice would choose.
        expand=tuple(_expand(selection.expansions)) or (PUBLISHED,) * selection.is_taken,
        granularity=sketch.candidate.granularity.parts,
        estimated_cycles=sketch.estimate.cycles,
        published_cycles=None if default is None else default.estimate.cycles,
        rivals=_rivals(selection, makespan_cycles) if selection.is_taken else None,
        options=tuple(option for each in selection.operators for option in _options(each, selection)),
        options_excluded=sum(len(each.excluded) for each in selection.operators),
    )


def _rivals(selection: Selection, makespan_cycles: int | None) -> operator_figures.RivalsSummary:
    """Count the uniform choices; of those left, a bound may exclude some beside the schedule that was made."""
    left = [rival for rival in selection.rivals if rival.score is None]
    cycles = inf if makespan_cycles is None else makespan_cycles
    excluded = sum(rival.is_excluded or rival.sketch.estimate.bound_cycles >= cycles for rival in left)
    scheduled, estimated = len(selection.rivals) - len(left), selection.unseen + len(left) - excluded
    return operator_figures.RivalsSummary(scheduled, excluded, estimated, is_quick=selection.limits.is_quick)


def _expand(taken: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a rule for the most frequent expansion of each type, then one for each operator that has another."""
    by_type: dict[str, dict[str, list[str]]] = {}
    for origin, names in taken.items():
        for op_type, name in names.items():
            by_type.setdefault(op_type, {}).setdefault(name, []).append(origin)
    usual = {op_type: max(names, key=lambda name: len(names[name])) for op_type, names in by_type.items()}
    for op_type, name in usual.items():
        yield f"{op_type}={name}"
    for op_type, found in by_type.items():
        for name, origins in found.items():
            if name != usual[op_type]:
                yield from (f"{origin}:{op_type}={name}" for origin in origins)


def _options(operators: OperatorOptions, selection: Selection) -> Iterator[operator_figures.OptionSummary]:
    origin = operators.origins[0]
    granularity, taken = selection.sketch.candidate.granularity, selection.expansions.get(origin, {})
    for option in operators.known:
        expansions = MappingProxyType(dict(option.expansions))
        is_chosen = option.is_of(origin, taken, granularity)
        own = {"operators": operators.origins, "expansions": expansions, "is_chosen": is_chosen}
        yield filled(operator_figures.OptionSummary, option, option.alone, **own)
