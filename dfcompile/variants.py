"""A model under choices of expansions, down to its canonical DAG."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from msgspec import Struct

from dfcompile import dfmodel_backend as backend
from dfcompile.canonical_dag import CanonicalDag, apply_dag_passes
from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.choosing import Candidate
from dfcompile.expansion_names import natural_order
from dfcompile.frontend import ChosenExpansion, Model, Program
from dfcompile.host.stages import Work, work_of
from dfcompile.lowering import ExpansionTable, apply_passes, check_choices, lower_to_canonical
from dfcompile.lowering.alternatives.outlined import Outline, OutlinedModel
from dfcompile.lowering.levels import LevelTwo, graph_of, level_two, program_of
from dfcompile.options import Choice, ShowStage, show_nothing
from dfcompile.plan import Plan
from dfcompile.records import replace
from dfcompile.scheduler.checked_schedule import Scheduling

if TYPE_CHECKING:
    from dfcompile.lowering.execution.verification import Deviation, Effect

EXAMPLE_SEED = 0
_VERIFIED_PARTS = 100  # compiling and running against lowering to either level: about, for what is shown of progress


class Variant(Struct, frozen=True, eq=False):
    """The model under one combination of expansions, down to the canonical DAG.

    Attributes:
        choices: of the user.
        expansions: in effect, for every operator type that offers several, and for single operators that are compared.
        offered: the expansions that were chosen among several.
        library: program of level 1.
        lowered: the model on level 2.
        scheduling: of its canonical DAG, with the DAG's depths.
        graph: the same DAG as kernels and tensors.
        extraction: how its canonical DAG was made.
        deviation: of the lowered model from the original; ``None`` if not asked for.
        effect_of_inputs: on the original's outputs; ``None`` if not asked for or not known.
        label: what tells it from the others.
    """

    choices: tuple[Choice, ...]
    expansions: Mapping[str, str]
    offered: tuple[ChosenExpansion, ...]
    library: Program
    lowered: LevelTwo
    scheduling: Scheduling
    graph: backend.DataflowGraph
    extraction: ExtractionOptions
    deviation: "Deviation | None"
    effect_of_inputs: "Effect | None"
    label: str

    @property
    def dag(self) -> CanonicalDag:
        """The canonical DAG."""
        return self.scheduling.dag


class Lowerings:
    """The model under several choices, each lowered once."""

    def __init__(self, model: Model, plan: Plan, show: ShowStage) -> None:
        self._model, self._plan, self._show = model, plan, show
        self._program = apply_passes(model.program, plan.passes.of_programs)
        self._outlines = OutlinedModel(model.program, plan.table)
        self._variants: dict[tuple[tuple[ChosenExpansion, ...], ExtractionOptions], Variant] = {}

    def outline(self, choices: Sequence[Choice]) -> Outline:
        """Return the scopes of the model under a choice; with passes of programs it is lowered for that."""
        if not self._plan.passes.of_programs:
            return self.outline_before_passes(choices)
        _, lowered = self._lowered(tuple(choices))
        return Outline(lowered.chosen, graph_of(lowered), frozenset(port.array for port in self._program.inputs))

    def outline_before_passes(self, choices: Sequence[Choice]) -> Outline:
        """Return the scopes that the model would have without its passes."""
        return self._outlines.outline(choices)

    def variant(self, choices: tuple[Choice, ...], extraction: ExtractionOptions, label: str) -> Variant:
        """Return the model under a choice; of choices with one effect the first is kept."""
        with work_of(3 + _VERIFIED_PARTS * self._plan.options.verify) as steps:
            with self._show(f"lowering {label}".rstrip()):
                library, lowered = self._lowered(choices)
                steps.add(2)
            key = lowered.chosen, extraction
            if key not in self._variants:
                with self._show("extracting the canonical dag"):
                    dag = canonical_dag_of(lowered, extraction, self._plan)
                    graph = backend.dataflow_graph(dag)
                    steps.add()
                verified, plan = self._verified(lowered, steps), self._plan
                of_user = tuple(choice for choice in choices if not plan.is_chosen or choice in plan.fixed)
                several = {(rule.op_type, rule.origin) for rule in plan.rules if rule.origin and len(rule.names) > 1}
                compared = [choice for choice in of_user if (choice.op_type, choice.origin) in several]
                offered = tuple(_offered(plan.table, lowered.chosen))
                in_effect = MappingProxyType(dict(_in_effect(compared, offered)))
                self._variants[key] = Variant(
                    of_user, in_effect, offered, library, lowered, Scheduling(dag), graph, extraction, *verified, label
                )
            return self._variants[key]

    def maps(self, choices: tuple[Choice, ...]) -> Program:
        """Return the model under a choice as a program of level 2, which is not scheduled.

        Raises:
            UserError: a choice fits no operator of the model.
        """
        library, lowered = self._lowered(choices)
        check_choices(choices, self._plan.table, (self._model.program, library))
        return program_of(lowered)

    def unverified(self) -> "Lowerings":
        """Return the same without verification and progress, for choices that are only compared."""
        plan = replace(self._plan, options=replace(self._plan.options, verify=False))
        return Lowerings(self._model, plan, show_nothing)

    def chosen(self, candidate: Candidate, label: str) -> Variant:
        """Return the model under an automatic choice."""
        extraction = replace(self._plan.extraction, granularity=candidate.granularity)
        return self.variant(candidate.choices, extraction, label)

    def _lowered(self, choices: tuple[Choice, ...]) -> tuple[Program, LevelTwo]:
        plan = self._plan
        library = apply_passes(lower_to_canonical(self._program, plan.table, choices), plan.passes.of_programs)
        return library, level_two(library, plan.table, choices, plan.passes.of_programs)

    @cached_property
    def _effect_of_inputs(self) -> "Effect | None":
        from dfcompile.lowering.execution.verification import effect_of_inputs  # what runs programs needs DaCe

        return effect_of_inputs(self._model, EXAMPLE_SEED)

    def _verified(self, lowered: LevelTwo, steps: Work) -> "tuple[Deviation | None, Effect | None]":
        """Return how far the lowered model is from the original, and what inputs change, if that is asked for."""
        if not self._plan.options.verify:
            return None, None
        from dfcompile.lowering.execution.verification import verified_deviation  # likewise

        with self._show("verifying the lowered model"), steps.part(_VERIFIED_PARTS):
            return verified_deviation(self._model, program_of(lowered), EXAMPLE_SEED), self._effect_of_inputs


def canonical_dag_of(lowered: LevelTwo, extraction: ExtractionOptions, plan: Plan) -> CanonicalDag:
    """Return the canonical DAG of a lowered model, or of a share of one, after its passes."""
    extracted = extract_graph(graph_of(lowered), extraction, parameters=tuple(lowered.parameters))
    return apply_dag_passes(extracted, plan.passes.of_dags)


def _offered(table: ExpansionTable, chosen: Sequence[ChosenExpansion]) -> Iterator[ChosenExpansion]:
    """Yield the expansions that are one of several, besides those that only run."""
    several = {
        (op_type, name)
        for (_, op_type), named in table.by_operator.items()
        if sum(not found.runs_only for found in named.values()) > 1
        for name in named
    }
    yield from (one for one in chosen if (one.op_type, one.name) in several)


def _in_effect(compared: Sequence[Choice], offered: Sequence[ChosenExpansion]) -> Iterator[tuple[str, str]]:
    """Yield what operator types with several expansions were lowered by, then what single operators were.

    A lowering has one name, whoever chose it: operators are named alone only where their expansions are compared.
    """
    names: dict[str, set[str]] = {}
    for one in offered:
        if all(choice.fit(one.op_type, one.origin) is None for choice in compared):
            names.setdefault(one.op_type, set()).add(one.name)
    yield from ((op_type, "+".join(sorted(used, key=natural_order))) for op_type, used in sorted(names.items()))
    yield from ((choice.key, choice.name) for choice in compared)
