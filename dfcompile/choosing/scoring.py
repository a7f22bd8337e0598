"""What is to be small of a choice: figures of its schedule."""

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.choosing.candidate import Candidate
from dfcompile.choosing.estimate import Memory, least_bytes
from dfcompile.choosing.sketches import Sketch
from dfcompile.options import Effort, Volumes
from dfcompile.records import replace
from dfcompile.scheduler import NonStreamingSchedule, Schedule, ScheduleOptions
from dfcompile.scheduler.evaluation import io_bytes
from dfcompile.scheduler.listing.list_schedule import through_memory
from dfcompile.scheduler.listing.listed_schedules import (
    ListedPlan,
    is_listable,
    listed_plan,
    most_listable_nodes,
)
from dfcompile.scheduler.partitioner import collect_partitioners, find_partitioner
from dfcompile.scheduler.streaming_schedule import TimedSchedule, timed_schedule


class Limits(Struct, frozen=True):
    """How many tasks a choice may have, and how many uniform choices are compared with it.

    Attributes:
        tasks: of all choices together whose scores are looked at, but for those that are looked at in any case.
        scopes: of all uniform choices together that are sketched.
        promising_tasks: the same of those that come after these because their estimates are near the least score.
        shorter_tasks: the same of those that come after these because their estimates are below the least score.
        own_tasks: that a choice may have, however few processing elements there are, unless the published one has more.
        own_tasks_per_element: that it may have per processing element, where that is more.
    """

    tasks: int
    scopes: int
    promising_tasks: int = 0
    shorter_tasks: int = 0
    own_tasks: int = 36_000
    own_tasks_per_element: int = 48

    @property
    def is_quick(self) -> bool:
        """Whether more is compared where the choice is asked for."""
        return self.tasks <= QUICK.tasks

    def most_tasks(self, pes: int) -> int:
        """Return how many tasks a choice for P processing elements may have."""
        return max(self.own_tasks, self.own_tasks_per_element * pes)

    def in_slices(self) -> "Limits":
        """Return these limits for a model whose arrays are in slices: short tasks hold few of these at a time."""
        return replace(self, own_tasks=_TIMES_IN_SLICES * self.own_tasks)

    def of_slow_schedules(self) -> "Limits":
        """Return these limits, or less where a schedule takes longer than a quick one without further conditions."""
        return Limits(*map(min, astuple(self), astuple(SLOWLY_SCHEDULED)))


_TIMES_IN_SLICES = 4
NOTHING = Limits(0, 0)
# For schedules of some 8 microseconds a task: some seconds on 64 elements, a minute and more on 2,048.
THOROUGH = Limits(
    600_000,
    60_000,
    promising_tasks=6_000_000,
    shorter_tasks=12_000_000,
    own_tasks=262_144,
    own_tasks_per_element=256,
)
SLOWLY_SCHEDULED = Limits(80_000, 2_000)  # some seconds, and half a second; minutes where more is tried
QUICK = Limits(10_000, 500, own_tasks_per_element=160)  # half a second, and a tenth


Score = tuple[float, ...]  # the smaller the better; what counts first comes first
NEVER: Score = (float("inf"),)
UNBOUNDED: Score = ()  # less than every other
ROUNDED = 1e-9  # relative: cycles on a machine are those of nanoseconds
_COUNTED_TASKS = 2_000_000  # of canonical DAGs that are made and not scheduled: some seconds


class OnMachine(Struct, frozen=True, eq=False):
    """What a DAG takes on a machine with its memory.

    Attributes:
        cycles: of the elements.
        schedule: the fastest that was found there.
        moved: bytes that DRAM reads and writes, by array.
        mapped: what maps the tasks so, in words of who found it.
    """

    cycles: float
    schedule: Schedule
    moved: Mapping[str, int]
    mapped: object = None


class MadeSchedule(Struct, frozen=True, eq=False):
    """A schedule that was made to compare choices.

    Attributes:
        dag: that it schedules.
        timed: the schedule.
        on_machine: the same tasks on a machine with its memory.
    """

    dag: CanonicalDag
    timed: TimedSchedule
    on_machine: OnMachine | None = None

    def is_of(self, dag: CanonicalDag) -> bool:
        """Return whether a DAG has the same tasks and edges."""
        columns = ("kind", "volume_in", "volume_out", "node_scope", "edge_source", "edge_target", "edge_volume")
        return all(np.array_equal(getattr(dag, name), getattr(self.dag, name)) for name in columns)


class Scores(Protocol):
    """Says how good choices are."""

    @property
    def limits(self) -> Limits:
        """How many choices are looked at."""
        ...

    @property
    def is_needed(self) -> bool:
        """Whether what tells the score of the choice is needed anyway."""
        return False

    def of(self, sketch: Sketch) -> Score:
        """Return the score of a choice."""
        ...

    def bound(self, sketch: Sketch) -> Score:  # noqa: ARG002  # of those that know one
        """Return what no score of a choice is less than, without placing its tasks."""
        return UNBOUNDED

    def planned(self, sketch: Sketch) -> Score:
        """Return what no score of a choice is less than, if need be by placing its tasks."""
        return self.bound(sketch)


class Machine(Struct, frozen=True):
    """What a choice for the least time knows of the machine.

    Attributes:
        memory: of a chip.
        fastest: gives what a DAG takes on it, memory included, by a schedule that is known or by another one, whichever
            is faster there.
    """

    memory: Memory
    fastest: Callable[[CanonicalDag, TimedSchedule], OnMachine]


class Makespans:
    """The makespan of a schedule, or its time on a machine, then the elements of its FIFOs."""

    def __init__(
        self,
        volumes: Volumes,
        options: ScheduleOptions,
        finish: Callable[[CanonicalDag], CanonicalDag],
        limits: Limits = THOROUGH,
        machine: Machine | None = None,
    ) -> None:
        """Say how schedules are made.

        Args:
            volumes: of edges.
            options: of schedules.
            finish: passes over canonical DAGs.
            limits: to what is scheduled.
            machine: that times are of; ``None``: makespans are what counts.
        """
        self.limits, self._machine = limits, machine
        self._volumes, self._options, self._finish = volumes, options, finish
        self._least: tuple[Score, MadeSchedule] | None = None
        self._dags: dict[Candidate, CanonicalDag] = {}
        self._scores: dict[object, Score] = {}  # by what gives the tasks; other numbers of elements may ask again
        self._plan: tuple[Candidate, ListedPlan] | None = None  # the shortest of those that were not scheduled
        lists = find_partitioner(options.partition, collect_partitioners()).lists
        self._is_planned = lists and not options.barrier and options.max_fifo is None and options.effort is Effort.QUICK

    @property
    def is_needed(self) -> bool:
        """The schedule of the choice is that of the report."""
        return True

    def of(self, sketch: Sketch) -> Score:
        """Return time, makespan and FIFOs of a schedule, or what is never the least if it does not end."""
        key = sketch.outline.chosen, sketch.candidate.granularity
        if key not in self._scores:
            self._scores[key] = self._of(sketch)
        self._dags.pop(sketch.candidate, None)  # a million tasks are a hundred megabytes
        return self._scores[key]

    def _of(self, sketch: Sketch) -> Score:
        dag = self.dag(sketch)
        plan: ListedPlan | None = None
        if self._plan is not None and self._plan[0] == sketch.candidate:  # by which the candidate was compared
            plan, self._plan = self._plan[1], None
        on_machine: OnMachine | None = None

        def is_enough(alone: NonStreamingSchedule) -> bool:
            """Return whether no schedule of the choice takes less on the machine than one in which nothing streams."""
            nonlocal on_machine
            least = self.bound(sketch)
            if self._machine is None or (alone.makespan_cycles,) > least:
                return False
            streamless = TimedSchedule(through_memory(dag, self._options, alone), non_streaming=alone)
            there = self._machine.fastest(dag, streamless)
            on_machine = there if there.cycles <= least[0] * (1 + ROUNDED) else None
            return on_machine is not None

        found = timed_schedule(dag, self._options, plan=plan, is_enough=is_enough)
        if found.deadlock:
            return NEVER
        makespan = found.schedule.makespan_cycles, sum(found.schedule.fifo_capacity.tolist())
        score: Score = makespan
        if self._machine is not None:
            on_machine = on_machine or self._machine.fastest(dag, found)
            score = (on_machine.cycles, *makespan)
        if self._least is None or score < self._least[0]:
            self._least = score, MadeSchedule(dag, found, on_machine)
        return score

    @property
    def made(self) -> "MadeSchedule | None":
        """The schedule of least score so far."""
        return None if self._least is None else self._least[1]

    def bound(self, sketch: Sketch) -> Score:
        """Return cycles that tasks or DRAM take at least; steady times may be below every bound."""
        if not self._options.timing.is_exact:
            return UNBOUNDED
        memory = None if self._machine is None else self._machine.memory
        moving = 0 if memory is None else least_bytes(sketch.outline.graph) / memory.bytes_per_cycle
        return (max(sketch.estimate.bound_cycles, moving),)

    def planned(self, sketch: Sketch) -> Score:
        """Return cycles that the schedule which these options give takes at least.

        A replay with single elements takes no less than what a list schedule was planned to take.
        """
        if not self._is_planned or sketch.estimate.tasks > most_listable_nodes(self._options.effort, is_chain=True):
            return UNBOUNDED  # none of millions of tasks is made for that
        dag = self.dag(sketch)
        if not is_listable(dag, self._options):
            return UNBOUNDED
        plan = listed_plan(dag, self._options)
        if self._plan is None or plan.cycles <= self._plan[1].cycles:
            self._plan = sketch.candidate, plan
        return (plan.cycles,)

    def dag(self, sketch: Sketch) -> CanonicalDag:
        """Return the canonical DAG of a choice."""
        if sketch.candidate not in self._dags:
            self._dags[sketch.candidate] = self._finish(dag_of(sketch, self._volumes))
        return self._dags[sketch.candidate]


class Traffic(Scores):
    """The bytes of all edges that touch a buffer, then the makespan by its estimate."""

    def __init__(self, volumes: Volumes, finish: Callable[[CanonicalDag], CanonicalDag]) -> None:
        """Say what edges carry, and which passes change canonical DAGs."""
        self._volumes, self._finish = volumes, finish

    @property
    def limits(self) -> Limits:
        """As many tasks are made; estimates, of cycles, promise nothing."""
        return replace(THOROUGH, tasks=_COUNTED_TASKS, promising_tasks=0, shorter_tasks=0)

    def of(self, sketch: Sketch) -> Score:
        """Return the bytes, and the cycles that a schedule takes about."""
        return io_bytes(self._finish(dag_of(sketch, self._volumes))), sketch.estimate.cycles


def dag_of(sketch: Sketch, volumes: Volumes) -> CanonicalDag:
    """Return the canonical DAG of a choice, before passes."""
    outline, options = sketch.outline, ExtractionOptions(volumes, sketch.candidate.granularity)
    return extract_graph(outline.graph, options, parameters=outline.parameters)
