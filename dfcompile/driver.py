"""The list of stages, and the loops over compared expansions and numbers of processing elements."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from dfcompile import dfmodel_backend as backend
from dfcompile.canonical_dag import CanonicalDag, apply_dag_passes, registered_dag_passes
from dfcompile.canonical_dag.extraction import DEFAULT_OPTIONS, ExtractionOptions, extract
from dfcompile.canonical_dag.extraction.granularity import parse_granularity
from dfcompile.canonical_dag.share import ProgramShare
from dfcompile.errors import InfeasibleError, UserError, nearest
from dfcompile.frontend import FILE_KINDS, ONNX, ChosenExpansion, Model, Program, ReadModel, ReadOptions, read_model
from dfcompile.lowering import (
    ChosenPasses,
    ExpansionTable,
    KnownAlternatives,
    addressed,
    apply_passes,
    check_choices,
    choose_passes,
    known_alternatives,
    lower_to_canonical,
    lower_to_maps,
    operator_origins,
    registered_expansions,
    registered_passes,
)
from dfcompile.lowering.alternatives.bound import ExpansionBound, expansion_bound
from dfcompile.lowering.execution.verification import Deviation, verified_deviation
from dfcompile.lowering.shares.program_share import SharedProgram
from dfcompile.options import Choice, Options, ShowStage, Timing, show_nothing
from dfcompile.scheduler import Schedule, ScheduleOptions, registered_partitioners
from dfcompile.scheduler.checked_schedule import CheckedSchedule, Scheduling
from dfcompile.scheduler.options import QUICK_PARTITION

OVERLAPS = MappingProxyType(
    {
        "perfect": backend.Overlap.PERFECT_OVERLAP,
        "none": backend.Overlap.NO_OVERLAP,
        "compute-memory": backend.Overlap.OVERLAP_COMPUTE_MEMORY,
    }
)
EXAMPLE_SEED = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of every stage, checked before the model is read."""

    reading: ReadOptions
    table: ExpansionTable
    passes: ChosenPasses
    combinations: tuple[tuple[Choice, ...], ...]
    extraction: ExtractionOptions
    schedules: tuple[ScheduleOptions, ...]
    system: backend.System
    mapping: backend.MappingOptions
    chips: tuple[int, ...]
    verify: bool
    warnings: tuple[str, ...]  # of the machine, and of plug-ins that cannot be imported


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """The model under one combination of expansions, down to the canonical DAG.

    Attributes:
        choices: of the user.
        expansions: in effect, for every operator type that offers several, and for every chosen operator.
        library: program of level 1.
        maps: program of level 2.
        scheduling: of its canonical DAG, with the DAG's depths.
        graph: the same DAG as kernels and tensors.
        deviation: of the lowered model from the original; ``None`` if not asked for.
    """

    choices: tuple[Choice, ...]
    expansions: Mapping[str, str]
    library: Program
    maps: Program
    scheduling: Scheduling
    graph: backend.DataflowGraph
    deviation: Deviation | None

    @property
    def dag(self) -> CanonicalDag:
        """The canonical DAG."""
        return self.scheduling.dag


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A variant on a number of processing elements per chip.

    Attributes:
        variant: how the model was lowered.
        pes: processing elements per chip.
        scheduled: on one chip.
        expansion_bound: of any lowering by known expansions; ``None`` where options change what these give.
        mapping: the ideal of the operators: perfect streams, free parallelism; uses as many of ``chips`` as are best.
        chips: at hand.
        attained: what the lowering's own tasks take, on as many of ``chips`` as are best.
    """

    variant: Variant
    pes: int
    scheduled: CheckedSchedule
    expansion_bound: ExpansionBound | None
    mapping: backend.Mapping
    chips: int
    attained: backend.TaskMapping

    @property
    def shown_schedule(self) -> tuple[CanonicalDag, Schedule]:
        """The schedule that files and pictures show, with its DAG: the mapping's, replayed; of several chips one's."""
        return self.attained.machine_dag, self.attained.schedule


@dataclass(frozen=True, slots=True, eq=False)
class Exploration:
    """Everything that the stages handed over in a run.

    Attributes:
        options: of the user.
        model: as read.
        variants: one per combination of expansions.
        points: one per number of processing elements, variant and number of chips; the last varies fastest.
        warnings: what is probably not as it was meant.
    """

    options: Options
    model: Model
    variants: tuple[Variant, ...]
    points: tuple[Point, ...]
    warnings: tuple[str, ...] = ()


def explore(options: Options, show: ShowStage = show_nothing, read: ReadModel = read_model) -> Exploration:
    """Take a model through all stages, once per combination of expansions and number of processing elements.

    Args:
        options: of the user.
        show: gives a context that lasts as long as a stage, for showing progress.
        read: gives the model of ``options.model``.

    Raises:
        UserError: in any stage; nothing has been written.
    """
    plan = _plan(options)
    with show(f"reading {options.model}"):
        model = read(options.model, plan.reading)
    plan = _addressed(plan, model)
    variants = _variants(model, plan, show)
    points: list[Point] = []
    alternatives = _alternatives(model, plan, show)
    for schedule in plan.schedules:
        bound = None if alternatives is None else expansion_bound(alternatives, schedule.pes)
        for variant in variants:
            points.extend(_points(variant, schedule, bound, plan, show))
    left_out = () if alternatives is None else alternatives.left_out
    return Exploration(options, model, variants, tuple(points), (*plan.warnings, *left_out))


def _addressed(plan: Plan, model: Model) -> Plan:
    """Return the plan with choices whose types, names and patterns are told apart, now that the model is known."""
    origins = operator_origins(model.program)
    combinations = (
        tuple(addressed(choice, plan.table, origins) for choice in choices) for choices in plan.combinations
    )
    return replace(plan, combinations=tuple(combinations))


def _alternatives(model: Model, plan: Plan, show: ShowStage) -> KnownAlternatives | None:
    """Return all that the known expansions offer, unless other options change the tasks as well."""
    if plan.passes or plan.extraction != DEFAULT_OPTIONS:
        return None
    with show("looking at the other expansions"):
        return known_alternatives(model.program, plan.table)


def _variants(model: Model, plan: Plan, show: ShowStage) -> tuple[Variant, ...]:
    """Lower the model under every combination of expansions; of combinations with one effect the first is kept."""
    program = apply_passes(model.program, plan.passes.of_programs)
    variants: dict[tuple[ChosenExpansion, ...], Variant] = {}
    for choices in plan.combinations:
        with show(f"lowering {' '.join(map(str, choices))}"):
            library = apply_passes(lower_to_canonical(program, plan.table, choices), plan.passes.of_programs)
            maps = apply_passes(lower_to_maps(library, plan.table, choices), plan.passes.of_programs)
        if maps.chosen not in variants:
            variants[maps.chosen] = _variant(model, choices, library, maps, plan, show)
    found = tuple(variants.values())
    _check_fit(model, found, plan)
    return found


def _variant(
    model: Model, choices: tuple[Choice, ...], library: Program, maps: Program, plan: Plan, show: ShowStage
) -> Variant:
    with show("extracting the canonical dag"):
        extracted = extract(maps.sdfg, plan.extraction, parameters=tuple(maps.parameters))
        dag = apply_dag_passes(extracted, plan.passes.of_dags)
        graph = backend.dataflow_graph(dag)
    deviation = None
    if plan.verify:
        with show("compiling and running the lowered model"):
            deviation = verified_deviation(model, maps, EXAMPLE_SEED)
    in_effect = MappingProxyType(dict(_in_effect(choices, plan.table, maps.chosen)))
    return Variant(choices, in_effect, library, maps, Scheduling(dag), graph, deviation)


def _points(
    variant: Variant, schedule: ScheduleOptions, bound: ExpansionBound | None, plan: Plan, show: ShowStage
) -> Iterator[Point]:
    pes = schedule.pes
    with show(f"scheduling on {pes} processing elements"):
        found = variant.scheduling.on(schedule)
    system = plan.system.with_cores(pes)
    counts = backend.ChipCounts(variant.graph, system, plan.mapping)
    tasks = _tasks(variant.dag, schedule, system, plan)
    if tasks.machine_dag is variant.dag:
        known = found.schedule if found.schedule.timing.is_exact else None
        tasks = replace(tasks, least_cycles=found.figures.lower_bound_cycles, known=known)
    attained = backend.AttainedCounts(tasks, counts, _shares(variant, plan), adds_up=_adds_up(plan))
    for chips in plan.chips:
        with show(f"mapping on {chips} chips of {pes} cores"):
            mapping = _ideal(counts, variant.graph, system, plan) if chips == 1 else counts.fastest(chips)
            fastest = attained.fastest(chips)
        yield Point(variant, pes, found, bound, mapping, chips, fastest)


def _shares(variant: Variant, plan: Plan) -> backend.LowerShare:
    """Return what lowers the share of a chip by the expansions and passes of the whole, down to its canonical DAG."""
    program = SharedProgram(variant.library, plan.table, {kernel.name: kernel for kernel in variant.dag.kernels})
    choices = (*_choices_of(variant.maps), *variant.choices)

    def lowered(share: ProgramShare) -> CanonicalDag | tuple[str, ...]:
        refused = program.refused(share)
        if refused:
            return refused
        maps = apply_passes(lower_to_maps(program.shared(share), plan.table, choices), plan.passes.of_programs)
        extracted = extract(maps.sdfg, plan.extraction, parameters=tuple(maps.parameters))
        return apply_dag_passes(extracted, plan.passes.of_dags)

    return lowered


def _adds_up(plan: Plan) -> bool:
    """Return whether work in shares is no less than as a whole: not of volumes or tasks that depend on all of it."""
    return plan.extraction == DEFAULT_OPTIONS and not plan.passes.of_dags


def _choices_of(maps: Program) -> Iterator[Choice]:
    """Yield what was chosen for each operator, so that no condition on extents chooses otherwise for a share."""
    names: dict[tuple[str, str], set[str]] = {}
    for found in maps.chosen:
        names.setdefault((found.op_type, found.origin), set()).add(found.name)
    for (op_type, origin), chosen in names.items():
        if len(chosen) == 1:
            yield Choice(op_type, min(chosen), origin)


def _ideal(
    counts: backend.ChipCounts, graph: backend.DataflowGraph, system: backend.System, plan: Plan
) -> backend.Mapping:
    """Return the ideal on one chip; where it would hold what the chip cannot, without a limit of SRAM, and say so."""
    try:
        return counts.fastest(1)
    except InfeasibleError as error:
        roomy = replace(system, accelerator=replace(system.accelerator, sram=backend.Amount(0.0)))
        found = backend.ChipCounts(graph, roomy, plan.mapping).fastest(1)
        said = backend.Assumption("SRAM of the ideal", f"not limited: {error}", "dfcompile")
        return replace(found, assumptions=(*found.assumptions, said))


def _tasks(dag: CanonicalDag, schedule: ScheduleOptions, system: backend.System, plan: Plan) -> backend.TaskModel:
    """Return the tasks on a chip; sets of kernels are compared by a quick partitioner."""
    scheduling = replace(schedule, timing=Timing.STEADY)
    is_quick = schedule.partition == QUICK_PARTITION
    planning = scheduling if is_quick else replace(scheduling, partition=QUICK_PARTITION, barrier=None)
    return backend.TaskModel(dag, system, scheduling, planning, plan.mapping.overlap)


def _plan(options: Options) -> Plan:
    table = registered_expansions()
    types = {op_type for _, op_type in table.by_operator}
    for choices in options.combinations:
        for choice in choices:
            if choice.op_type in types:  # others are names of operators, which only the model knows
                table.check(choice)
    system = backend.load_system(options.system)
    for pes in options.pes:
        system.with_cores(pes)
    for chips in options.chips:
        system.require_chips(chips)
    partitioners, passes, dag_passes = registered_partitioners(), registered_passes(), registered_dag_passes()
    partitioners.find(options.partition, "--partition")
    faults = (
        *table.faults,
        *passes.faults,
        *dag_passes.faults,
        *partitioners.faults,
        *backend.plugin_faults(),
        *FILE_KINDS.collect().faults,
    )
    return Plan(
        reading=ReadOptions(shapes=options.shapes, dims=options.dims, operators=frozenset(table.op_types(ONNX))),
        table=table,
        passes=choose_passes(options.passes, passes, dag_passes),
        combinations=options.combinations,
        extraction=ExtractionOptions(options.volumes, parse_granularity(options.granularity)),
        schedules=tuple(
            ScheduleOptions(
                pes,
                options.partition,
                barrier=options.barrier,
                timing=options.timing,
                effort=options.effort,
                max_fifo=options.max_fifo,
            )
            for pes in options.pes
        ),
        system=system,
        mapping=backend.MappingOptions(
            solver=backend.find_solver(options.solver).name,
            overlap=OVERLAPS[options.overlap],
        ),
        chips=options.chips,
        verify=options.verify,
        warnings=(*system.warnings, *dict.fromkeys(map(str, faults))),
    )


def _known(what: str, name: str, known: Mapping[str, object] | Sequence[str]) -> str:
    if name not in known:
        raise UserError(f"--{what} {name!r}: unknown{nearest(name, known)}")
    return name


def _check_fit(model: Model, variants: Sequence[Variant], plan: Plan) -> None:
    """A choice must fit an operator of the model under at least one combination: another one may lower it away."""
    choices = tuple(dict.fromkeys(choice for combination in plan.combinations for choice in combination))
    check_choices(choices, plan.table, (model.program, *(variant.library for variant in variants)))


def _in_effect(
    choices: Sequence[Choice], table: ExpansionTable, chosen: Sequence[ChosenExpansion]
) -> Iterator[tuple[str, str]]:
    """Yield what operator types with several expansions were lowered by, then what single operators were."""
    single = [choice for choice in choices if choice.origin]
    names: dict[str, set[str]] = {}
    for found in chosen:
        others = names.setdefault(found.op_type, set())
        if all(choice.fit(found.op_type, found.origin) is None for choice in single):
            others.add(found.name)
    for (_, op_type), named in sorted(table.by_operator.items()):
        if op_type in names and len(named) > 1:
            default = {name for name, found in named.items() if found.is_default}
            used = names[op_type] & set(named) if names[op_type] else default
            if used:
                yield op_type, "+".join(sorted(used))
    for choice in choices:
        if choice.origin:
            yield choice.key, choice.name
