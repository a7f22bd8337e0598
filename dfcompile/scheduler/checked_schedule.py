"""Checked schedules: made, accepted by the checker, measured, and replayed if that is asked for."""

from functools import cached_property

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, critical_path, streaming_depth, total_work
from dfcompile.canonical_dag.hardware import Hardware
from dfcompile.errors import VerificationError
from dfcompile.host.stages import work_of
from dfcompile.records import replace
from dfcompile.scheduler.baseline import schedule_non_streaming
from dfcompile.scheduler.bounds.makespan import lower_bound_cycles
from dfcompile.scheduler.checker import check, check_non_streaming
from dfcompile.scheduler.evaluation import ScheduleFigures, figures
from dfcompile.scheduler.options import ScheduleOptions
from dfcompile.scheduler.recomputation import recompute_times
from dfcompile.scheduler.schedules import NonStreamingSchedule, Sample, Schedule
from dfcompile.scheduler.simulation import Simulation, simulate
from dfcompile.scheduler.simulation.simulator import replay_of
from dfcompile.scheduler.streaming_schedule import TimedSchedule, timed_schedule
from dfcompile.scheduler.what_if import WhatIf, what_if


class Depths(Struct, frozen=True):
    """What a canonical DAG takes on one and on any number of processing elements, in cycles.

    Attributes:
        total_work_cycles: T1, all tasks one after another.
        critical_path_cycles: T_inf, without streaming.
        streaming_depth_cycles: T_s_inf, with streaming.
    """

    total_work_cycles: int
    critical_path_cycles: int
    streaming_depth_cycles: int


class CheckedSchedule(Struct, frozen=True, eq=False):
    """A canonical DAG on a number of processing elements: a schedule that the checker accepted, and its figures.

    Attributes:
        schedule: of the graph.
        figures: of the schedule.
        simulation: its replay with stalls, if that was asked for, or if it ends in a deadlock.
        sample: as `TimedSchedule` has it.
        baseline: the schedule in which every edge goes through memory, accepted by its checker.
        ends: whether the schedule ends, and not in a deadlock.
        what_if: what it takes on the other machines that were asked for; nothing of a deadlock.
    """

    schedule: Schedule
    figures: ScheduleFigures
    simulation: Simulation | None
    sample: Sample | None
    baseline: NonStreamingSchedule
    ends: bool = True
    what_if: tuple[WhatIf, ...] = ()


class Scheduling:
    """The schedules of one canonical DAG, `dag`; its depths and baselines are found once."""

    def __init__(self, dag: CanonicalDag) -> None:
        self.dag = dag
        self._baselines: dict[tuple[int, Hardware], NonStreamingSchedule] = {}

    @cached_property
    def depths(self) -> Depths:
        """Total work and depths, in cycles."""
        return Depths(total_work(self.dag), critical_path(self.dag), streaming_depth(self.dag))

    def on(self, options: ScheduleOptions, known: TimedSchedule | None = None) -> CheckedSchedule:
        """Schedule the DAG on a number of processing elements, check the schedule, and replay it if asked for.

        Args:
            options: of the schedule.
            known: the schedule that they give of a DAG of the same tasks, if it was made before.

        Raises:
            UserError: no partitioner has the name, or a time does not fit in 64 bits.
            VerificationError: the checker rejects the schedule, or its times are not those of its assignment.
        """
        with work_of(2) as steps:
            timed = timed_schedule(self.dag, options) if known is None else known
            steps.add()
            machine = options.pes, options.hardware
            if machine not in self._baselines:
                made = timed.non_streaming or schedule_non_streaming(self.dag, options.pes, options.hardware)
                check_non_streaming(self.dag, made, options.hardware)
                self._baselines[machine] = made
            baseline = self._baselines[machine]
            found, ends = timed.schedule, not timed.deadlock
            deepest, most = int(found.fifo_capacity.max(initial=0)), options.max_fifo
            if most is not None and deepest > most:
                raise VerificationError(f"max-fifo: found a fifo of {deepest} elements against at most {most}")
            if found.timing.is_exact or options.fifos in {None, "rule"}:
                check(self.dag, found)
                if not timed.is_replayed:
                    recompute_times(self.dag, found)
            simulation = simulate(self.dag, replay_of(found)) if options.simulated or not ends else None
            bound = timed.bound_cycles or lower_bound_cycles(self.dag, options.pes)
            of_it = figures(self.dag, found, baseline, ends=ends, bound_cycles=bound)

            def made_for(other: Hardware) -> tuple[Schedule, int | None]:
                anew = self.on(replace(options, hardware=other, what_if=(), simulated=False))
                return anew.schedule, anew.figures.makespan_cycles

            others = what_if(self.dag, found, options.what_if, made_for) if ends else ()
            return CheckedSchedule(found, of_it, simulation, timed.sample, baseline, ends, others)
