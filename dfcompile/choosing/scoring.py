"""What is to be small of a choice: figures of its schedule."""

from collections.abc import Callable
from typing import Protocol

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.choosing.sketches import Sketch
from dfcompile.options import Effort, Volumes
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.listing.listed_schedules import is_listable, listed_cycles
from dfcompile.scheduler.partitioner import collect_partitioners, find_partitioner
from dfcompile.scheduler.streaming_schedule import timed_schedule

Score = tuple[float, ...]  # the smaller the better; what counts first comes first
NEVER: Score = (float("inf"),)


class Scores(Protocol):
    """Says how good choices are."""

    def of(self, sketch: Sketch) -> Score:
        """Return the score of a choice."""
        ...

    def excludes(self, sketch: Sketch, least: Score, *, is_scheduled: bool) -> bool:
        """Return whether it is proved that a choice has no smaller score, if need be by placing its tasks."""
        ...


class Makespans:
    """The makespan of a schedule, then the elements of its FIFOs."""

    def __init__(
        self, volumes: Volumes, options: ScheduleOptions, finish: Callable[[CanonicalDag], CanonicalDag]
    ) -> None:
        """Say how schedules are made.

        Args:
            volumes: of edges.
            options: of schedules.
            finish: passes over canonical DAGs.
        """
        self._volumes, self._options, self._finish = volumes, options, finish

    def of(self, sketch: Sketch) -> Score:
        """Return the makespan and the FIFOs of a schedule, or what is never the least if it does not end."""
        found = timed_schedule(self.dag(sketch), self._options)
        if found.deadlock:
            return NEVER
        return found.schedule.makespan_cycles, sum(found.schedule.fifo_capacity.tolist())

    def excludes(self, sketch: Sketch, least: Score, *, is_scheduled: bool) -> bool:
        """Return whether no schedule, or not the one that these options give, is shorter.

        A replay with single elements takes no less than what a list schedule was planned to take.
        """
        if not self._options.timing.is_exact:
            return False  # steady times may be below every bound
        if sketch.estimate.bound_cycles > least[0]:
            return True
        options = self._options
        partitioner = find_partitioner(options.partition, collect_partitioners())
        is_listed = partitioner.lists and not options.barrier and options.max_fifo is None
        if not (is_scheduled and is_listed and options.effort is Effort.QUICK):
            return False
        dag = self.dag(sketch)
        return is_listable(dag, options) and listed_cycles(dag, options) > least[0]

    def dag(self, sketch: Sketch) -> CanonicalDag:
        """Return the canonical DAG of a choice."""
        options = ExtractionOptions(self._volumes, sketch.candidate.granularity)
        return self._finish(extract_graph(sketch.outline.graph, options))
