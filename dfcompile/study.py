"""A model on any number of processing elements: chosen, lowered, scheduled and mapped."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from math import inf
from typing import assert_never

from msgspec import Struct

from dfcompile import choosing, expansion_names
from dfcompile import dfmodel_backend as backend
from dfcompile.canonical_dag import CanonicalDag, apply_dag_passes
from dfcompile.canonical_dag.extraction import DECLARED, DEFAULT_OPTIONS
from dfcompile.canonical_dag.kernel import ProgramShare
from dfcompile.errors import InfeasibleError
from dfcompile.frontend import Model
from dfcompile.host.stages import counted, work_of
from dfcompile.lowering import KnownAlternatives, check_choices, known_alternatives
from dfcompile.lowering.alternatives.bound import ExpansionBound, divided_bound, expansion_bound, least_work
from dfcompile.lowering.levels import level_two
from dfcompile.micro_batches import RunMicroBatches
from dfcompile.options import Aim, Choice, Effort, ShowStage, Timing, Volumes, show_nothing
from dfcompile.plan import Plan, addressed_plan
from dfcompile.records import replace
from dfcompile.scheduler import Schedule, ScheduleOptions
from dfcompile.scheduler.checked_schedule import CheckedSchedule
from dfcompile.scheduler.options import QUICK_PARTITION
from dfcompile.scheduler.repetition import Repetition, best_repetition
from dfcompile.scheduler.streaming_schedule import TimedSchedule
from dfcompile.variants import Lowerings, Variant, canonical_dag_of

_LOWERED_SCOPES = 60  # of a model with passes that is lowered for each choice: some ten seconds
_MAPPED_TASKS = 60_000  # of all choices that are compared by their mappings: some ten seconds


class Point(Struct, frozen=True, eq=False):
    """A variant on a number of processing elements per chip.

    Attributes:
        variant: how the model was lowered.
        pes: processing elements per chip.
        scheduled: on one chip.
        expansion_bound: of any lowering by known expansions; ``None`` where options change what these give.
        mapping: the ideal of the operators: perfect streams, free parallelism; uses as many of ``chips`` as are best.
        chips: at hand.
        attained: what the lowering's own tasks take, on as many of ``chips`` as are best.
        selection: how the variant was chosen; ``None`` if the user named its expansions.
        system: with all its chips, each of so many cores.
        least_work: of every operator, by any known expansion; ``None`` where ``expansion_bound`` is.
        repetition: of the schedule, if the model runs more than once.
        is_saved: whether the variant is a choice of an earlier run.
        alternatives: all that the known expansions offer for what is scheduled; ``None`` where that was not looked at.
        parts: that the model runs in; everything else but `attained` is of one, on the elements and the system of a
            group. ``None``: it is whole.
    """

    variant: Variant
    pes: int
    scheduled: CheckedSchedule
    expansion_bound: ExpansionBound | None
    mapping: backend.Mapping
    chips: int
    attained: backend.TaskMapping
    selection: choosing.Selection | None
    system: backend.System
    least_work: Mapping[str, int] | None = None
    repetition: Repetition | None = None
    is_saved: bool = False
    alternatives: KnownAlternatives | None = None
    micro_batches: RunMicroBatches | None = None

    @property
    def all_pes(self) -> int:
        """Processing elements of a chip, in all groups."""
        return self.pes if self.micro_batches is None else self.micro_batches.pes

    @property
    def whole_system(self) -> backend.System:
        """The system with all groups."""
        return self.system if self.micro_batches is None else self.micro_batches.system

    @property
    def sram_bytes(self) -> float:
        """SRAM of a chip; 0: unlimited."""
        return self.whole_system.accelerator.sram_bytes

    @property
    def shown_schedule(self) -> tuple[CanonicalDag, Schedule]:
        """The schedule that files and pictures show, with its DAG: the mapping's, replayed; of several chips one's."""
        return self.attained.machine_dag, self.attained.schedule


class Study:
    """A model, and what is the same on every number of processing elements."""

    def __init__(self, model: Model, plan: Plan, show: ShowStage) -> None:
        self.model, self.plan, self._show = model, addressed_plan(plan, model), show
        plan = self.plan
        self._lowerings = lowerings = Lowerings(model, plan, show)
        # All operators that cannot be lowered are named before anything else is done.
        self._named = () if plan.is_chosen else _named_variants(model, plan, lowerings)
        if plan.chooses:
            lowerings.outline(plan.fixed)
        self.alternatives = _alternatives(model, plan, show)
        known = self.alternatives
        self._choice = None if known is None or plan.saved else _automatic_choice(plan, lowerings, known)
        self._work = None if known is None else least_work(known)

    def on_system(self, system: backend.System) -> "Study":
        """Return the same on another system."""
        found = copy(self)
        found.plan = replace(self.plan, system=system)
        return found

    def bound(self, schedule: ScheduleOptions) -> ExpansionBound | None:
        """Return what no lowering falls below, unless other options change the tasks as well."""
        return _bound(self.alternatives, schedule.pes, self.plan)

    def points(self, schedule: ScheduleOptions, all_pes: int) -> tuple[Point, ...]:
        """Return the variants on a number of processing elements, each on every number of chips.

        Args:
            schedule: on P elements.
            all_pes: of a chip, of which these may be a group: variants are told apart by it.
        """
        plan, lowerings, bound = self.plan, self._lowerings, self.bound(schedule)
        points: list[Point] = []
        with work_of(1 + plan.chooses) as steps:
            with self._show(f"choosing expansions for {schedule.pes} processing elements"):
                selection = _selection(self._choice, schedule, plan, lowerings)
            variants = self._named
            if plan.saved:
                variants = (_saved_variant(self.model, plan, lowerings, all_pes),)
            if selection is not None and selection.is_taken:
                variants = (lowerings.chosen(selection.sketch.candidate, str(all_pes)),)
            steps.add(plan.chooses)
            known = self.alternatives, bound, None if bound is None else self._work
            for variant in counted(variants, lambda variant: variant.dag.tasks_count):
                points += _points((variant, selection), schedule, known, plan, self._show)
        return tuple(points)


def _bound(alternatives: KnownAlternatives | None, pes: int, plan: Plan) -> ExpansionBound | None:
    """Return what no lowering falls below, unless other options change the tasks as well."""
    if alternatives is None or plan.passes or plan.extraction.volumes is not Volumes.EXACT:
        return None
    if plan.is_chosen:
        return divided_bound(alternatives, pes)
    return expansion_bound(alternatives, pes) if plan.extraction == DEFAULT_OPTIONS else None


def _automatic_choice(plan: Plan, lowerings: Lowerings, alternatives: KnownAlternatives) -> choosing.AutomaticChoice:
    before_passes = _is_chosen_before_passes(plan, alternatives)
    asked, granularity = plan.options.granularity, plan.extraction.granularity
    return choosing.AutomaticChoice(
        outline_of=lowerings.outline_before_passes if before_passes else lowerings.outline,
        known=alternatives,
        table=plan.table,
        rules=plan.rules if plan.chooses else (),
        granularity=granularity if plan.chooses and asked.every is not None else None,
        volumes=plan.extraction.volumes,
        finish=lambda dag: apply_dag_passes(dag, plan.passes.of_dags),
        own=granularity if plan.chooses else DECLARED,
        limits=choosing.QUICK if plan.options.expand.rest == expansion_names.QUICK else choosing.THOROUGH,
    )


def _is_chosen_before_passes(plan: Plan, alternatives: KnownAlternatives) -> bool:
    return bool(plan.passes.of_programs) and alternatives.least_scopes > _LOWERED_SCOPES


def _selection(
    choice: choosing.AutomaticChoice | None, schedule: ScheduleOptions, plan: Plan, lowerings: Lowerings
) -> choosing.Selection | None:
    """Return the automatic choice; where expansions are named, what it would be, if that is quickly said."""
    if choice is None:
        return None
    if not plan.chooses:
        return choice.glance(schedule.pes)
    # Many schedules are compared: the last effort is made for the choice alone.
    compared = replace(schedule, effort=Effort.DEFAULT) if schedule.effort is Effort.HIGH else schedule
    found = choice.on(compared, _scores(choice, compared, plan, lowerings), _machine(compared, plan))
    return replace(
        found,
        made=found.made if compared is schedule else None,
        is_before_passes=_is_chosen_before_passes(plan, choice.known),
    )


def _scores(
    choice: choosing.AutomaticChoice, schedule: ScheduleOptions, plan: Plan, lowerings: Lowerings
) -> choosing.Scores | None:
    """Return what is to be small; ``None``: time or makespan."""
    match plan.options.objective:
        case Aim.TIME | Aim.MAKESPAN:
            return None
        case Aim.IO:
            return choosing.Traffic(plan.extraction.volumes, choice.finish)
        case Aim.ENERGY | Aim.COST:
            return _MappedScores(schedule, plan, lowerings)
    assert_never(plan.options.objective)


def _machine(schedule: ScheduleOptions, plan: Plan) -> choosing.Machine | None:
    """Return the machine whose time is to be small; ``None``: it is something else."""
    if plan.options.objective is not Aim.TIME:
        return None
    system = plan.system.with_cores(schedule.pes)
    chip = system.accelerator
    ghz = chip.frequency_ghz

    def fastest(dag: CanonicalDag, timed: TimedSchedule) -> choosing.OnMachine:
        tasks = replace(_tasks(dag, schedule, system, plan), non_streaming=timed.non_streaming)
        whole = tasks.whole(timed.schedule)
        if whole is None:
            return choosing.OnMachine(0.0, timed.schedule, {})
        moved = {store.name: store.dram_bytes for store in whole.stores}
        return choosing.OnMachine(whole.time_ns * ghz, whole.schedule, moved, backend.Chosen(whole, tasks.stores))

    sram_bytes, per_cycle = chip.sram_bytes or inf, system.dram_gb_per_s / (ghz * chip.lanes_per_core)
    return choosing.Machine(choosing.Memory(sram_bytes, per_cycle), fastest)


class _MappedScores:
    """Energy or cost of the mapping with most chips, then its time."""

    def __init__(self, schedule: ScheduleOptions, plan: Plan, lowerings: Lowerings) -> None:
        self._schedule, self._plan, self._lowerings = schedule, plan, lowerings.unverified()

    @property
    def limits(self) -> choosing.Limits:
        """As many tasks are mapped."""
        return replace(choosing.SLOWLY_SCHEDULED, tasks=_MAPPED_TASKS)

    @property
    def is_needed(self) -> bool:
        """The mapping of the choice is made again."""
        return False

    def of(self, sketch: choosing.Sketch) -> choosing.Score:
        """Return what the report says of the choice."""
        variant = self._lowerings.chosen(sketch.candidate, str(self._schedule.pes))
        *_, point = _points((variant, None), self._schedule, (None, None, None), self._plan, show_nothing)
        found = point.attained
        return (found.energy_j if self._plan.options.objective is Aim.ENERGY else found.cost_usd), found.time_s

    def bound(self, sketch: choosing.Sketch) -> choosing.Score:  # noqa: ARG002  # of a protocol
        """Return that no bound is known."""
        return choosing.UNBOUNDED

    planned = bound


def _alternatives(model: Model, plan: Plan, show: ShowStage) -> KnownAlternatives | None:
    """Return all that the known expansions offer, if it is asked for or said in the report."""
    if not plan.is_chosen and (plan.passes or plan.extraction != DEFAULT_OPTIONS):
        return None
    with show("looking at the other expansions"):
        return known_alternatives(model.program, plan.table)


def _named_variants(model: Model, plan: Plan, lowerings: Lowerings) -> tuple[Variant, ...]:
    """Return the model under every combination of expansions; of combinations with one effect the first is kept."""
    found = [
        lowerings.variant(choices, plan.extraction, " ".join(map(str, choices)))
        for choices in counted(plan.combinations)
    ]
    variants = tuple(dict.fromkeys(found))
    choices = (choice for combination in plan.combinations for choice in combination)
    _check_fit(model, variants, plan, choices)
    return variants


def _saved_variant(model: Model, plan: Plan, lowerings: Lowerings, pes: int) -> Variant:
    """Return the model under the choice that was saved for a number of processing elements."""
    saved = plan.saved[pes]
    variant = lowerings.variant(saved.choices, saved.extraction, str(pes))
    _check_fit(model, (variant,), plan, saved.choices)
    return variant


def _points(
    chosen: tuple[Variant, choosing.Selection | None],
    schedule: ScheduleOptions,
    known: tuple[KnownAlternatives | None, ExpansionBound | None, Mapping[str, int] | None],
    plan: Plan,
    show: ShowStage,
) -> Iterator[Point]:
    (variant, selection), (alternatives, bound, work), pes = chosen, known, schedule.pes
    chip_counts, repeat = plan.options.chips, plan.options.repeat
    named = "".join(f"{choice} " for choice in variant.choices)
    with work_of(1 + len(chip_counts)) as steps:
        with show(f"scheduling {named}on {pes} processing elements"):
            made = None if selection is None else selection.made
            if made is not None and not made.is_of(variant.dag):
                made = None
            found = variant.scheduling.on(schedule, None if made is None else made.timed)
            steps.add()
        repetition = best_repetition(variant.scheduling, schedule, repeat) if repeat > 1 else None
        system = plan.system.with_cores(pes)
        counts = backend.ChipCounts(variant.graph, system, plan.mapping, chip_counts)
        tasks = _tasks(variant.dag, schedule, system, plan)
        if tasks.machine_dag is variant.dag:
            exact, whole = _exact(found.schedule), None if made is None else _mapped(made)
            least = found.figures.lower_bound_cycles
            tasks = replace(tasks, least_cycles=least, known=exact, non_streaming=found.baseline, chosen=whole)
        # Work in shares is no less than as a whole: not of volumes or tasks that depend on all of it.
        adds_up = variant.extraction == DEFAULT_OPTIONS and not plan.passes.of_dags
        attained = backend.AttainedCounts(tasks, counts, _shares(variant, plan), adds_up=adds_up).fastest()
        for chips in chip_counts:
            with show(f"mapping {named}on {chips} chip{'s' * (chips > 1)} of {pes} cores"):
                mapping = _ideal(counts, variant.graph, system, plan) if chips == 1 else counts.fastest(chips)
                fastest = next(attained)
                steps.add()
            mapped = bound, mapping, chips, fastest, selection, system, work, repetition
            yield Point(variant, pes, found, *mapped, is_saved=bool(plan.saved), alternatives=alternatives)


def _exact(found: Schedule | None) -> Schedule | None:
    """Return a schedule whose times are those of its replay."""
    return found if found is not None and found.timing.is_exact else None


def _mapped(made: choosing.MadeSchedule) -> backend.Chosen | None:
    """Return how a choice was mapped, by a schedule whose times are those of its replay."""
    found = None if made.on_machine is None else made.on_machine.mapped
    return found if isinstance(found, backend.Chosen) and _exact(found.whole.schedule) is not None else None


def _shares(variant: Variant, plan: Plan) -> backend.LowerShare:
    """Return what lowers the share of a chip by the expansions and passes of the whole, down to its canonical DAG."""
    from dfcompile.lowering.shares import SharedProgram, choices_of  # needs DaCe

    program = SharedProgram(variant.library, plan.table, {kernel.name: kernel for kernel in variant.dag.kernels})
    choices = (*choices_of(variant.lowered.chosen), *variant.choices)

    def lowered(share: ProgramShare) -> CanonicalDag | tuple[str, ...]:
        refused = program.refused(share)
        if refused:
            return refused
        found = level_two(program.shared(share), plan.table, choices, plan.passes.of_programs)
        return canonical_dag_of(found, variant.extraction, plan)

    return lowered


def _ideal(
    counts: backend.ChipCounts, graph: backend.DataflowGraph, system: backend.System, plan: Plan
) -> backend.Mapping:
    """Return the ideal on one chip; where it would hold what the chip cannot, without a limit of SRAM, and say so."""
    try:
        return counts.fastest(1)
    except InfeasibleError as error:
        roomy = replace(system, accelerator=replace(system.accelerator, sram=backend.Amount(0.0)))
        found = backend.ChipCounts(graph, roomy, plan.mapping).fastest(1)
        said = backend.Assumption("SRAM of perfect streams", f"not limited: {error}", "dfcompile")
        return replace(found, assumptions=(*found.assumptions, said))


def _tasks(dag: CanonicalDag, schedule: ScheduleOptions, system: backend.System, plan: Plan) -> backend.TaskModel:
    """Return the tasks on a chip; sets of kernels are compared by a quick partitioner."""
    scheduling = planning = replace(schedule, timing=Timing.STEADY)
    if schedule.partition != QUICK_PARTITION:
        planning = replace(scheduling, partition=QUICK_PARTITION, barrier=None)
    return backend.TaskModel(dag, system, scheduling, planning, plan.mapping.overlap)


def _check_fit(model: Model, variants: Sequence[Variant], plan: Plan, choices: Iterable[Choice]) -> None:
    """A choice must fit an operator of the model under at least one combination: another one may lower it away."""
    programs = (model.program, *(variant.library for variant in variants))
    check_choices(tuple(dict.fromkeys(choices)), plan.table, programs)
