"""The options of every stage, checked as far as that is possible before the model is read."""

from collections.abc import Collection
from types import MappingProxyType

from msgspec import Struct

from dfcompile import dfmodel_backend as backend
from dfcompile.canonical_dag import registered_dag_passes
from dfcompile.canonical_dag.extraction import DECLARED, ExtractionOptions, Granularity
from dfcompile.canonical_dag.extraction.granularity import parse_granularity
from dfcompile.errors import UserError, nearest
from dfcompile.expansion_names import QUICK
from dfcompile.frontend import FILE_KINDS, ONNX, Model, ReadOptions
from dfcompile.lowering import (
    ChosenPasses,
    ExpansionTable,
    addressed,
    choose_passes,
    operator_origins,
    registered_expansions,
    registered_passes,
)
from dfcompile.options import Aim, Choice, ExpansionRule, Granularities, Options, of_stage
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions, registered_partitioners

OVERLAPS = MappingProxyType(
    {
        "perfect": backend.Overlap.PERFECT_OVERLAP,
        "none": backend.Overlap.NO_OVERLAP,
        "compute-memory": backend.Overlap.OVERLAP_COMPUTE_MEMORY,
    }
)


class Plan(Struct, frozen=True):
    """The options of every stage, checked before the model is read."""

    reading: ReadOptions
    table: ExpansionTable
    passes: ChosenPasses
    combinations: tuple[tuple[Choice, ...], ...]
    extraction: ExtractionOptions
    chooses: bool
    is_quick: bool
    aim: Aim
    rules: tuple[ExpansionRule, ...]
    granularity: Granularity | None
    schedules: tuple[ScheduleOptions, ...]
    system: backend.System
    mapping: backend.MappingOptions
    chips: tuple[int, ...]
    verify: bool
    repeat: int
    warnings: tuple[str, ...]  # of the machine, and of plug-ins that cannot be imported

    @property
    def fixed(self) -> tuple[Choice, ...]:
        """Choices that the user leaves no alternative to."""
        return tuple(Choice(rule.op_type, rule.names[0], rule.origin) for rule in self.rules if len(rule.names) == 1)


def plan_of(options: Options) -> Plan:
    """Return what the options mean.

    Raises:
        UserError: one of them names nothing that exists.
    """
    table = registered_expansions()
    types = {op_type for _, op_type in table.by_operator}
    for choices in options.expand.combinations:
        for choice in choices:
            if choice.op_type in types:  # others are names of operators, which only the model knows
                table.check(choice)
    asked = options.granularity
    granularity = None
    if asked != Granularities():
        granularity = parse_granularity(asked.every or "declared", asked.own)
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
        reading=ReadOptions(**of_stage(options, "reading"), operators=frozenset(table.op_types(ONNX))),
        table=table,
        passes=choose_passes(options.passes, passes, dag_passes),
        combinations=options.expand.combinations,
        extraction=ExtractionOptions(options.volumes, granularity or DECLARED),
        chooses=options.expand.chooses,
        is_quick=options.expand.rest == QUICK,
        aim=options.objective,
        rules=options.expand.rules,
        granularity=granularity if asked.every is not None or not options.expand.chooses else None,
        schedules=tuple(ScheduleOptions(pes, **of_stage(options, "scheduling")) for pes in options.pes),
        system=system,
        mapping=backend.MappingOptions(
            solver=backend.find_solver(options.solver).name,
            overlap=OVERLAPS[options.overlap],
        ),
        chips=options.chips,
        verify=options.verify,
        repeat=options.repeat,
        warnings=(*system.warnings, *dict.fromkeys(map(str, faults))),
    )


def addressed_plan(plan: Plan, model: Model) -> Plan:
    """Return the plan with choices whose types, names and patterns are told apart, now that the model is known."""
    origins = operator_origins(model.program)
    _check_origins(plan.extraction.granularity, origins)
    combinations = (
        tuple(addressed(choice, plan.table, origins) for choice in choices) for choices in plan.combinations
    )
    rules = []
    for rule in plan.rules:
        first = addressed(Choice(rule.op_type, rule.names[0], rule.origin), plan.table, origins)
        rules.append(replace(rule, op_type=first.op_type, origin=first.origin))
    return replace(plan, combinations=tuple(combinations), rules=tuple(rules))


def _check_origins(granularity: Granularity, origins: Collection[str]) -> None:
    for origin, _ in granularity.own:
        if origin not in origins:
            raise UserError(f"granularity of {origin!r}: no operator of that name{nearest(origin, origins)}")
