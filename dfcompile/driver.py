"""The list of stages, and the loops over compared expansions and numbers of processing elements."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from dfcompile import dfmodel_backend as backend
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import ExtractionOptions, Volumes, extract
from dfcompile.canonical_dag.granularity import parse_granularity
from dfcompile.errors import UserError, nearest
from dfcompile.frontend import Model, OperatorNode, Program, ReadOptions, read_model
from dfcompile.lowering import (
    Choice,
    ExpansionTable,
    LoweringPass,
    apply_passes,
    check_choices,
    lower_to_canonical,
    lower_to_maps,
    registered_expansions,
    registered_passes,
)
from dfcompile.options import Options
from dfcompile.scheduling import (
    Depths,
    Scheduled,
    SchedulingOptions,
    ShowStage,
    check_partition,
    depths_of,
    non_streaming,
    scheduled,
)
from dfcompile.verification import verified_error

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
    """A variant on a number of processing elements per chip; ``mapping`` uses as many of ``chips`` as are best."""

    variant: Variant
    pes: int
    scheduled: Scheduled
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
    """

    options: Options
    model: Model
    variants: tuple[Variant, ...]
    points: tuple[Point, ...]


@contextmanager
def show_nothing(_title: str) -> Iterator[None]:
    """Show no progress."""
    yield


def explore(options: Options, show: ShowStage = show_nothing) -> Exploration:
    """Take a model through all stages, once per combination of expansions and number of processing elements.

    Args:
        options: of the user.
        show: gives a context that lasts as long as a stage, for showing progress.

    Raises:
        UserError: in any stage; nothing has been written.
    """
    plan = _plan(options)
    with show(f"reading {options.model}"):
        model = read_model(options.model, plan.reading)
    variants = tuple(_variant(model, choices, plan, show) for choices in plan.combinations)
    _check_fit(model, variants, plan)
    points = tuple(
        point
        for pes in options.pes
        for variant in variants
        for point in _points(variant, pes, options.chips, plan, show)
    )
    return Exploration(options, model, variants, points)


def _variant(model: Model, choices: tuple[Choice, ...], plan: Plan, show: ShowStage) -> Variant:
    with show(f"lowering {' '.join(map(str, choices))}"):
        program = apply_passes(model.program, plan.passes)
        library = apply_passes(lower_to_canonical(program, plan.table, choices), plan.passes)
        maps = apply_passes(lower_to_maps(library, plan.table, choices), plan.passes)
    with show("extracting the canonical dag"):
        dag = extract(maps.sdfg, plan.extraction, parameters=tuple(maps.parameters))
        graph = backend.dataflow_graph(dag)
    max_abs_error = None
    if plan.verify:
        with show("compiling and running the lowered model"):
            max_abs_error = verified_error(model, maps, EXAMPLE_SEED)
    in_effect = MappingProxyType(dict(_in_effect(choices, plan.table, (program, library))))
    return Variant(choices, in_effect, library, maps, dag, depths_of(dag), graph, max_abs_error)


def _points(variant: Variant, pes: int, chip_counts: Sequence[int], plan: Plan, show: ShowStage) -> Iterator[Point]:
    with show(f"scheduling on {pes} processing elements"):
        found = scheduled(variant.dag, pes, plan.scheduling, non_streaming(variant.dag, pes))
    system = plan.system.with_cores(pes)
    counts = backend.ChipCounts(variant.graph, system, plan.mapping)
    for chips in chip_counts:
        with show(f"mapping on {chips} chips of {pes} cores"):
            mapping = counts.fastest(chips)
        yield Point(variant, pes, found, mapping, chips)


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
        verify=options.verify,
    )


def _named_passes(names: tuple[str, ...]) -> tuple[LoweringPass, ...]:
    known = {plugin.value.name: plugin.value for plugin in registered_passes()}
    return tuple(known[_known("pass", name, known)] for name in names)


def _known(what: str, name: str, known: Mapping[str, object] | Sequence[str]) -> str:
    if name not in known:
        raise UserError(f"--{what} {name!r}: unknown{nearest(name, known)}")
    return name


def _check_fit(model: Model, variants: Sequence[Variant], plan: Plan) -> None:
    """A choice must fit an operator of the model under at least one combination: another one may lower it away."""
    choices = tuple(dict.fromkeys(choice for combination in plan.combinations for choice in combination))
    check_choices(choices, plan.table, (model.program, *(variant.library for variant in variants)))


def _in_effect(
    choices: Sequence[Choice], table: ExpansionTable, programs: Sequence[Program]
) -> Iterator[tuple[str, str]]:
    present = {
        (node.dialect, node.op_type)
        for program in programs
        for node in program.sdfg.start_state.nodes()
        if isinstance(node, OperatorNode)
    }
    for (dialect, op_type), named in sorted(table.by_operator.items()):
        if (dialect, op_type) in present and len(named) > 1:
            wanted = [choice.name for choice in choices if choice.key == op_type and choice.name in named]
            default = [name for name, found in named.items() if found.is_default]
            for name in (*wanted, *default)[:1]:
                yield op_type, name
    for choice in choices:
        if choice.origin:
            yield choice.key, choice.name
