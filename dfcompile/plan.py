"""The options of every stage, checked as far as that is possible before the model is read."""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from dfcompile import dfmodel_backend as backend
from dfcompile.canonical_dag import registered_dag_passes
from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.granularity import parse_granularity
from dfcompile.dfmodel_backend.machine.plausibility import require_types
from dfcompile.errors import UserError, nearest
from dfcompile.frontend import CANONICAL, FILE_KINDS, ONNX, Model, ReadOptions
from dfcompile.host.inputs import readable_text
from dfcompile.lowering import (
    ChosenPasses,
    ExpansionTable,
    addressed,
    choose_passes,
    operator_origins,
    registered_expansions,
    registered_passes,
)
from dfcompile.options import Choice, ExpansionRule, MicroBatches, Options, of_stage
from dfcompile.options.choice_file import SavedChoice, parse_choices
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions, registered_partitioners

OVERLAPS = MappingProxyType(
    {
        "perfect": backend.Overlap.PERFECT_OVERLAP,
        "none": backend.Overlap.NO_OVERLAP,
        "compute-memory": backend.Overlap.OVERLAP_COMPUTE_MEMORY,
    }
)

_LARGEST_CHOICE = 2**24  # bytes: a rule for each of a hundred thousand operators


class Chosen(Struct, frozen=True):
    """A choice that was saved: expansions, how tasks are extracted, and in which parts the model runs."""

    choices: tuple[Choice, ...]
    extraction: ExtractionOptions
    micro_batches: MicroBatches


class Plan(Struct, frozen=True):
    """The options of every stage, checked before the model is read."""

    options: Options  # of the user
    reading: ReadOptions
    table: ExpansionTable
    passes: ChosenPasses
    combinations: tuple[tuple[Choice, ...], ...]
    extraction: ExtractionOptions
    saved: Mapping[int, Chosen]  # by number of processing elements; empty: nothing is taken from a file
    rules: tuple[ExpansionRule, ...]
    schedules: tuple[ScheduleOptions, ...]
    system: backend.System
    mapping: backend.MappingOptions
    warnings: tuple[str, ...]  # of the machine, and of plug-ins that cannot be imported

    @property
    def chooses(self) -> bool:
        """Whether expansions and tasks, as far as they are left open, are chosen in this run."""
        return self.options.expand.chooses and not self.saved

    @property
    def is_chosen(self) -> bool:
        """Whether expansions and tasks are those of a choice, made in this run or an earlier one."""
        return self.chooses or bool(self.saved)

    @property
    def fixed(self) -> tuple[Choice, ...]:
        """Choices that the user leaves no alternative to."""
        return tuple(rule.choices[0] for rule in self.rules if len(rule.names) == 1)


def plan_of(options: Options) -> Plan:
    """Return what the options mean.

    Raises:
        UserError: one of them names nothing that exists.
    """
    table = registered_expansions()
    types = {op_type for _, op_type in table.by_operator}
    for choice in (choice for choices in options.expand.combinations for choice in choices):
        if choice.op_type in types:  # others are names of operators, which only the model knows
            table.check(choice)
    asked = options.granularity
    system = backend.load_system(options.system)
    for pes in options.pes:
        system.with_cores(pes)
    for chips in options.chips:
        system.require_chips(chips)
    require_types(system.streams, table.op_types(CANONICAL))
    what_if = system.streams.others(options.what_if)
    partitioners, passes, dag_passes = registered_partitioners(), registered_passes(), registered_dag_passes()
    partitioners.find(options.partition, "--partition")
    faults = (
        *table.faults,
        *passes.faults,
        *dag_passes.faults,
        *partitioners.faults,
        *backend.fusion_solvers().faults,
        *backend.named_systems().faults,
        *backend.dimension_kinds().faults,
        *FILE_KINDS.collect().faults,
    )
    return Plan(
        options=options,
        reading=ReadOptions(
            **of_stage(options, "reading"), operators=frozenset(table.op_types(ONNX)), reads_weights=options.verify
        ),
        table=table,
        passes=choose_passes(options.passes, passes, dag_passes),
        combinations=options.expand.combinations,
        extraction=ExtractionOptions(options.volumes, parse_granularity(asked.every or "declared", asked.own)),
        saved=_saved(options),
        rules=options.expand.rules,
        schedules=tuple(
            ScheduleOptions(pes, hardware=system.streams.hardware, what_if=what_if, **of_stage(options, "scheduling"))
            for pes in options.pes
        ),
        system=system,
        mapping=backend.MappingOptions(
            solver=backend.find_solver(options.solver).name, overlap=OVERLAPS[options.overlap]
        ),
        warnings=(*system.warnings, *dict.fromkeys(map(str, faults))),
    )


def _saved(options: Options) -> Mapping[int, Chosen]:
    """Read the choice of each number of processing elements, if there is a file of choices.

    Raises:
        UserError: the file cannot be read, or says nothing of a number of processing elements.
    """
    if options.choice is None:
        return MappingProxyType({})
    where = f"--choice {str(options.choice)!r}"
    known = parse_choices(readable_text(options.choice, where, _LARGEST_CHOICE), options.choice)
    for pes in options.pes:
        if pes not in known:
            there = ", ".join(map(str, known)) or "none"
            raise UserError(f"{where}: found choices for {there} PEs against {pes}")
    return MappingProxyType({pes: _chosen(known[pes], options) for pes in options.pes})


def _chosen(saved: SavedChoice, options: Options) -> Chosen:
    granularity = parse_granularity(saved.granularity.every or "declared", saved.granularity.own)
    choices = tuple(rule.choices[0] for rule in saved.rules)
    return Chosen(choices, ExtractionOptions(options.volumes, granularity), saved.micro_batches)


def addressed_plan(plan: Plan, model: Model) -> Plan:
    """Return the plan with choices whose types, names and patterns are told apart, now that the model is known."""
    origins = operator_origins(model.program)
    for extraction in (plan.extraction, *(chosen.extraction for chosen in plan.saved.values())):
        for origin, _ in extraction.granularity.own:
            if origin not in origins:
                raise UserError(f"granularity of {origin!r}: no operator of that name{nearest(origin, origins)}")

    def told(choices: tuple[Choice, ...]) -> tuple[Choice, ...]:
        return tuple(addressed(choice, plan.table, origins) for choice in choices)

    saved = {pes: replace(chosen, choices=told(chosen.choices)) for pes, chosen in plan.saved.items()}
    rules = []
    for rule in plan.rules:
        first = addressed(rule.choices[0], plan.table, origins)
        rules.append(replace(rule, op_type=first.op_type, origin=first.origin))
    combinations = tuple(map(told, plan.combinations))
    return replace(plan, combinations=combinations, rules=tuple(rules), saved=MappingProxyType(saved))
