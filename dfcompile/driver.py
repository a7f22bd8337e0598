"""The list of stages, and the loops over numbers of processing elements and micro-batches."""

from functools import cached_property, partial
from math import inf
from typing import TYPE_CHECKING

from msgspec import Struct

from dfcompile import dfmodel_backend as backend
from dfcompile.dfmodel_backend.options import NS_PER_S
from dfcompile.errors import UserError
from dfcompile.frontend import Model, ReadModel, read_model
from dfcompile.host.stages import counted
from dfcompile.lowering import KnownAlternatives
from dfcompile.lowering.alternatives.bound import ExpansionBound
from dfcompile.micro_batches import FastestMicroBatches, RunMicroBatches, groups_of
from dfcompile.options import Aim, MicroBatches, Options, ShowStage, show_nothing
from dfcompile.plan import plan_of
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions
from dfcompile.study import Point, Study
from dfcompile.traffic_plans import TrafficPlans
from dfcompile.variants import Variant

if TYPE_CHECKING:
    from dfcompile.lowering.independence import DividedModel


class Exploration(Struct, frozen=True, eq=False):
    """Everything that the stages handed over in a run.

    Attributes:
        options: of the user.
        model: as read.
        variants: one per combination of expansions.
        points: one per number of processing elements, variant and number of chips; the last varies fastest.
        warnings: what is probably not as it was meant.
        plans: of the least traffic.
        alternatives: all that the known expansions offer; ``None`` where that was not looked at.
    """

    options: Options
    model: Model
    variants: tuple[Variant, ...]
    points: tuple[Point, ...]
    plans: TrafficPlans
    warnings: tuple[str, ...] = ()
    alternatives: KnownAlternatives | None = None


def explore(options: Options, show: ShowStage = show_nothing, read: ReadModel = read_model) -> Exploration:
    """Take a model through all stages, once per combination of expansions and number of processing elements.

    Args:
        options: of the user.
        show: gives a context that lasts as long as a stage, for showing progress.
        read: gives the model of ``options.model``.

    Raises:
        UserError: in any stage; nothing has been written.
    """
    plan = plan_of(options)
    with show(f"reading {options.model}"):
        model = read(options.model, plan.reading)
    whole = Study(model, plan, show)
    divided = _InMicroBatches(whole, read, show)
    points = [point for schedule in counted(plan.schedules) for point in divided.points(schedule)]
    found = tuple(dict.fromkeys(point.variant for point in points))
    left_out = () if whole.alternatives is None else whole.alternatives.left_out
    warnings = (*plan.warnings, *left_out)
    return Exploration(options, model, found, tuple(points), divided.plans, warnings, whole.alternatives)


class _InMicroBatches:
    """A model as a whole and in micro-batches."""

    def __init__(self, whole: Study, read: ReadModel, show: ShowStage) -> None:
        self._whole, self._read, self._show = whole, read, show
        self._studies: dict[MicroBatches, Study | None] = {}
        self._dependent: set[str] = set()  # dimensions
        self.plans = TrafficPlans(whole.model.program)

    def points(self, schedule: ScheduleOptions) -> tuple[Point, ...]:
        """Return the points of a number of processing elements, in micro-batches as asked for, or the fastest.

        Raises:
            UserError: there are no such micro-batches.
        """
        plan = self._whole.plan
        asked = plan.saved[schedule.pes].micro_batches if plan.saved else plan.options.micro_batches
        if asked.size and asked != MicroBatches(asked.dimension, plan.reading.dims.get(asked.dimension, 0)):
            return self._points_in(self._required(asked, schedule), asked, schedule)
        points = self._whole.points(schedule, schedule.pes)
        if asked.is_chosen and plan.chooses and plan.options.objective is Aim.TIME and plan.options.repeat == 1:
            for name in plan.reading.dims:
                points = self._faster(points, name, schedule)
        return points

    def _faster(self, points: tuple[Point, ...], name: str, schedule: ScheduleOptions) -> tuple[Point, ...]:
        """Return, for each number of chips, what is faster of these points and micro-batches of a dimension."""
        extent, bound = self._whole.plan.reading.dims[name], self._whole.bound(schedule)
        most = schedule.pes if len(points) == points[0].chips == 1 else 1
        best, times = list(points), dict[MicroBatches, list[float]]()

        def time_of(place: int, size: int, groups: int, below_s: float) -> float:
            said = MicroBatches(name, size, groups)
            try:
                study = None if name in self._dependent else self._study(MicroBatches(name, size))
                if study is None or self._floor_of_all_s(study, said, best[place], schedule) >= below_s:
                    return inf
                if said not in times:
                    found = self._points_in(study, said, schedule)
                    times[said] = list(map(_time_s, found))
                    # Others are not kept: a hundred thousand tasks are some hundred megabytes.
                    best[:] = [min(ends, key=_time_s) for ends in zip(best, found, strict=True)]
            except UserError:  # such as a program of vectors that needs two of them, or too little memory
                return inf
            return times[said][place]

        for place, point in enumerate(points):
            limits = point.attained.time_s, _floor_s(point, bound, self.plans.model.compulsory_bytes)
            FastestMicroBatches(extent, partial(_groups_of, extent, most), limits, partial(time_of, place)).search()
        return tuple(best)

    def _floor_of_all_s(self, study: Study, said: MicroBatches, point: Point, schedule: ScheduleOptions) -> float:
        """Return a time that all micro-batches do not fall below, on the machine of a point."""
        one_s = _floor_s(point, study.bound(replace(schedule, pes=schedule.pes // said.at_once)))
        return one_s * -(-self._whole.plan.reading.dims[said.dimension] // (said.size * said.at_once))

    def _points_in(self, study: Study, said: MicroBatches, schedule: ScheduleOptions) -> tuple[Point, ...]:
        plan, pes, least_bytes = self._whole.plan, schedule.pes, self.plans.model.compulsory_bytes
        count, groups, whole = plan.reading.dims[said.dimension] // said.size, said.at_once, plan.system.with_cores(pes)
        ran = RunMicroBatches(
            said.dimension, said.size, groups, count=count, pes=pes, system=whole, proved_bytes=least_bytes
        )
        group = study.on_system(whole.in_groups(groups))
        points = group.points(replace(schedule, pes=pes // groups), pes)

        def of_all(attained: backend.TaskMapping) -> backend.TaskMapping:
            used = replace(whole, chips=attained.system.chips, network=attained.system.network)
            return backend.in_parts(attained, used, count, groups, least_bytes)

        return tuple(replace(point, micro_batches=ran, attained=of_all(point.attained)) for point in points)

    @cached_property
    def _divided(self) -> "DividedModel":
        from dfcompile.lowering.independence import DividedModel  # needs DaCe

        return DividedModel(self._whole.model.program, self._whole.plan.table)

    def _required(self, asked: MicroBatches, schedule: ScheduleOptions) -> Study:
        """Return the model of a micro-batch that is asked for.

        Raises:
            UserError: there is no such dimension or size, or they depend on one another.
        """
        where, dims = f"--micro-batches {asked}", self._whole.plan.reading.dims
        if asked.dimension not in dims:
            known = ", ".join(f"{name}={size}" for name, size in dims.items()) or "none"
            raise UserError(f"{where}: found --dim {known} against --dim {asked.dimension}=SIZE")
        if not dims[asked.dimension] or dims[asked.dimension] % asked.size:
            raise UserError(f"{where}: found {dims[asked.dimension]} against a multiple of {asked.size}")
        if asked.at_once > min(schedule.pes, dims[asked.dimension] // asked.size):
            most = min(schedule.pes, dims[asked.dimension] // asked.size)
            raise UserError(f"{where}: found {asked.at_once} groups against at most {most}, as many as PEs and parts")
        if asked.at_once > 1 and self._whole.plan.options.chips != (1,):
            raise UserError(f"{where}: found groups of PEs beside --chips against one of them")
        found = self._study(replace(asked, at_once=1))
        if found is None:
            raise UserError(f"{where}: parts of {asked.dimension!r} are not known to be independent of one another")
        return found

    def _study(self, asked: MicroBatches) -> Study | None:
        """Return the model of a micro-batch; None if its results are not known to depend on it alone.

        Raises:
            UserError: there is no such model; the next time it is None.
        """
        if asked not in self._studies:
            self._studies[asked] = None
            plan = self._whole.plan
            dims = {**plan.reading.dims, asked.dimension: asked.size}
            with self._show(f"looking at parts of {asked}"):
                part = self._read(plan.options.model, replace(plan.reading, dims=dims))
                count = plan.reading.dims[asked.dimension] // asked.size
                is_one = self._divided.consists_of(part.program, count)
            if is_one:
                self._studies[asked] = Study(part, plan, self._show)
            elif asked.size > 1:  # a single index is often another model
                self._dependent.add(asked.dimension)
        return self._studies[asked]


def _time_s(point: Point) -> float:
    return point.attained.time_s


def _groups_of(extent: int, most: int, size: int) -> tuple[int, ...]:
    return groups_of(extent // size, most)


def _floor_s(point: Point, bound: ExpansionBound | None, least_bytes: int = 0) -> float:
    """Return a time that no lowering falls below on the machine of a point."""
    system = point.whole_system
    chip, per_s = system.accelerator, NS_PER_S * point.chips
    cycles = 0 if bound is None else bound.cycles // (chip.lanes_per_core * chip.stages_per_core)
    return max(cycles / (chip.frequency_ghz * per_s), least_bytes / (system.dram_gb_per_s * per_s))
