"""The list of stages, and the loops over compared expansions and numbers of processing elements."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from dfcompile import dfmodel_backend as backend
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction.extract import DEFAULT_OPTIONS, ExtractionOptions, Volumes, extract
from dfcompile.canonical_dag.extraction.granularity import parse_granularity
from dfcompile.errors import UserError, nearest
from dfcompile.frontend import ChosenExpansion, Model, Program, ReadModel, ReadOptions, read_model
from dfcompile.lowering import (
    Choice,
    ExpansionTable,
    LoweringPass,
    OperatorAlternatives,
    apply_passes,
    check_choices,
    known_alternatives,
    lower_to_canonical,
    lower_to_maps,
    registered_expansions,
    registered_passes,
)
from dfcompile.lowering.alternatives.bound import ExpansionBound, expansion_bound
from dfcompile.lowering.execution.verification import verified_error
from dfcompile.options import Options
from dfcompile.scheduler.checked_schedule import (
    Depths,
    Scheduled,
    SchedulingOptions,
    ShowStage,
    check_partition,
    depths_of,
    non_streaming,
    scheduled,
)

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
    passes: tuple[LoweringPass, ...]
    combinations: tuple[tuple[Choice, ...], ...]
    extraction: ExtractionOptions
    scheduling: SchedulingOptions
    system: backend.System
    mapping: backend.MappingOptions
    chips: tuple[int, ...]
    verify: bool


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """The model under one combination of expansions, down to the canonical DAG.

    Attributes:
        choices: of the user.
        expansions: in effect, for every operator type that offers several, and for every chosen operator.
        library: program of level 1.
        maps: program of level 2.
        dag: the canonical DAG.
        depths: of the canonical DAG.
        graph: the same as kernels and tensors.
        max_abs_error: of the lowered model against the original; ``None`` if not asked for.
    """

    choices: tuple[Choice, ...]
    expansions: Mapping[str, str]
    library: Program
    maps: Program
    dag: CanonicalDag
    depths: Depths
    graph: backend.DataflowGraph
    max_abs_error: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A variant on a number of processing elements per chip.

    Attributes:
        variant: how the model was lowered.
        pes: processing elements per chip.
        scheduled: on one chip.
        expansion_bound: of any lowering by known expansions; ``None`` where options change what these give.
        mapping: uses as many of ``chips`` as are best.
        chips: at hand.
    """

    variant: Variant
    pes: int
    scheduled: Scheduled
    expansion_bound: ExpansionBound | None
    mapping: backend.Mapping
    chips: int


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


@contextmanager
def show_nothing(_title: str) -> Iterator[None]:
    """Show no progress."""
    yield


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
    variants = _variants(model, plan, show)
    points: list[Point] = []
    alternatives = _alternatives(model, plan, show)
    for pes in options.pes:
        bound = None if alternatives is None else expansion_bound(alternatives, pes)
        for variant in variants:
            points.extend(_points(variant, pes, bound, plan, show))
    return Exploration(options, model, variants, tuple(points), plan.system.warnings)


def _alternatives(model: Model, plan: Plan, show: ShowStage) -> tuple[OperatorAlternatives, ...] | None:
    """Return all that the known expansions offer, unless other options change the tasks as well."""
    if plan.passes or plan.extraction != DEFAULT_OPTIONS:
        return None
    with show("looking at the other expansions"):
        return known_alternatives(model.program, plan.table)


def _variants(model: Model, plan: Plan, show: ShowStage) -> tuple[Variant, ...]:
    """Lower the model under every combination of expansions; of combinations with one effect the first is kept."""
    program = apply_passes(model.program, plan.passes)
    variants: dict[tuple[ChosenExpansion, ...], Variant] = {}
    for choices in plan.combinations:
        with show(f"lowering {' '.join(map(str, choices))}"):
            library = apply_passes(lower_to_canonical(program, plan.table, choices), plan.passes)
            maps = apply_passes(lower_to_maps(library, plan.table, choices), plan.passes)
        if maps.chosen not in variants:
            variants[maps.chosen] = _variant(model, choices, library, maps, plan, show)
    found = tuple(variants.values())
    _check_fit(model, found, plan)
    return found


def _variant(
    model: Model, choices: tuple[Choice, ...], library: Program, maps: Program, plan: Plan, show: ShowStage
) -> Variant:
    with show("extracting the canonical dag"):
        dag = extract(maps.sdfg, plan.extraction, parameters=tuple(maps.parameters))
        graph = backend.dataflow_graph(dag)
    max_abs_error = None
    if plan.verify:
        with show("compiling and running the lowered model"):
            max_abs_error = verified_error(model, maps, EXAMPLE_SEED)
    in_effect = MappingProxyType(dict(_in_effect(choices, plan.table, maps.chosen)))
    return Variant(choices, in_effect, library, maps, dag, depths_of(dag), graph, max_abs_error)


def _points(variant: Variant, pes: int, bound: ExpansionBound | None, plan: Plan, show: ShowStage) -> Iterator[Point]:
    with show(f"scheduling on {pes} processing elements"):
        found = scheduled(variant.dag, pes, plan.scheduling, non_streaming(variant.dag, pes))
    system = plan.system.with_cores(pes)
    counts = backend.ChipCounts(variant.graph, system, plan.mapping)
    for chips in plan.chips:
        with show(f"mapping on {chips} chips of {pes} cores"):
            mapping = counts.fastest(chips)
        yield Point(variant, pes, found, bound, mapping, chips)


def _plan(options: Options) -> Plan:
    table = registered_expansions()
    combinations = tuple(
        tuple(Choice(choice.op_type, choice.name, choice.origin) for choice in combination)
        for combination in options.combinations
    )
    for choices in combinations:
        for choice in choices:
            table.check(choice)
    system = backend.load_system(options.system)
    for pes in options.pes:
        system.with_cores(pes)
    for chips in options.chips:
        system.require_chips(chips)
    check_partition(options.partition)
    return Plan(
        reading=ReadOptions(shapes=options.shapes),
        table=table,
        passes=_named_passes(options.passes),
        combinations=combinations,
        extraction=ExtractionOptions(Volumes(options.volumes), parse_granularity(options.granularity)),
        scheduling=SchedulingOptions(options.partition, options.timing, options.barrier),
        system=system,
        mapping=backend.MappingOptions(
            solver=backend.Solver(_known("solver", options.solver, [solver.value for solver in backend.Solver])),
            overlap=OVERLAPS[options.overlap],
        ),
        chips=options.chips,
        verify=options.verify,
    )


def _named_passes(names: tuple[str, ...]) -> tuple[LoweringPass, ...]:
    known = registered_passes()
    return tuple(known.find(name, "--pass") for name in names)


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
    single = {(choice.origin, choice.op_type) for choice in choices if choice.origin}
    names: dict[str, set[str]] = {}
    for found in chosen:
        others = names.setdefault(found.op_type, set())
        if (found.origin, found.op_type) not in single:
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
