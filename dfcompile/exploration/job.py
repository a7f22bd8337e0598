"""One job of an exploration: a lowering on a number of processing elements, and what it takes."""

import hashlib
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from dfcompile.canonical_dag.extraction import ExtractionOptions, Granularity
from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.canonical_dag.extraction.scopes import LoweredGraph
from dfcompile.errors import InfeasibleError
from dfcompile.exploration.on_chip import choose_on_chip, stores_of
from dfcompile.exploration.on_chip_check import check_on_chip
from dfcompile.host.garbage import collected_seldom
from dfcompile.options import Effort, Timing, Volumes
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.checker import check
from dfcompile.scheduler.partitioner import collect_partitioners, find_partitioner
from dfcompile.scheduler.recomputation import recompute_times
from dfcompile.scheduler.streaming_schedule import timed_schedule

_STAGES = ("canonical_dag", "scheduler", "exploration", "dfmodel_backend/milp.py")  # whose sources make a result
_PACKAGES = ("dfcompile", "numpy", "pulp")

Natural = Annotated[int, Meta(ge=0, le=2**63 - 1)]  # where one is read


class Job(Struct, frozen=True):
    """A lowering on a number of processing elements, with amounts of on-chip memory.

    Attributes:
        graph: map scopes and arrays of the lowered model: all that a canonical DAG depends on.
        granularity: of its tasks.
        pes: number of processing elements.
        partition: name of the partitioner.
        memories: bytes of on-chip memory.
        effort: how much is tried for a short schedule.
    """

    graph: LoweredGraph
    granularity: Granularity
    pes: int
    partition: str
    memories: tuple[int, ...]
    effort: Effort = Effort.DEFAULT

    @property
    def lowering(self) -> str:
        """A hash of everything that the schedule depends on, sources of the stages included."""
        content = repr((self.graph.scopes, tuple(self.graph.arrays.values()), self.granularity, self.pes))
        asked = f"{self.partition}\n{self.effort.value}"
        return hashlib.sha256(f"{_sources(self.partition)}\n{asked}\n{content}".encode()).hexdigest()

    @property
    def keys(self) -> list[str]:
        """Addresses of its results, one for each amount of memory."""
        lowering = self.lowering
        return [f"{lowering}/{memory}" for memory in self.memories]


class Outcome(Struct, frozen=True, forbid_unknown_fields=True):
    """What a job takes with an amount of memory.

    Attributes:
        memory_bytes: on the chip.
        makespan_cycles: of the replayed schedule.
        is_replayed: whether it is; of what is too large the times are steady.
        io_bytes: off the chip.
        all_io_bytes: through memory, on the chip or off.
        held_bytes: on the chip at most.
        on_chip: names of the arrays there.
        tasks: of the canonical DAG.
        blocks: of the schedule.
    """

    memory_bytes: Natural
    makespan_cycles: Natural
    is_replayed: bool
    io_bytes: Natural
    all_io_bytes: Natural
    held_bytes: Natural
    on_chip: tuple[str, ...]
    tasks: Natural
    blocks: Natural

    @property
    def is_possible(self) -> bool:
        """Whether no more is on the chip than has room, and no more leaves it than passes through memory."""
        return self.held_bytes <= self.memory_bytes and self.io_bytes <= self.all_io_bytes


@collected_seldom()
def run_job(job: Job) -> tuple[Outcome, ...]:
    """Extract, schedule and check a job; choose what is on the chip, and check that; one outcome per memory.

    FIFOs are never full in the replay: as large as they have to be for that, a makespan is the same.

    Raises:
        UserError: in one of the stages.
        VerificationError: a checker rejects something.
    """
    dag = extract_graph(job.graph, ExtractionOptions(Volumes.EXACT, job.granularity))
    lists = find_partitioner(job.partition, collect_partitioners()).lists
    never_full = None if lists else max(int(dag.edge_volume.max(initial=1)), 1)
    options = ScheduleOptions(job.pes, job.partition, timing=Timing.EXACT, fifos=never_full, effort=job.effort)
    timed = timed_schedule(dag, options)
    if timed.deadlock:
        links = "; ".join(wait.text(dag) for wait in timed.deadlock)
        raise InfeasibleError(f"schedule of {dag.name!r} on {job.pes} processing elements: deadlock, {links}")
    schedule = timed.schedule
    check(dag, schedule)
    if not timed.is_replayed:
        recompute_times(dag, schedule)
    stores = stores_of(dag, job.graph.arrays, schedule)
    found = []
    for memory in job.memories:
        on_chip = choose_on_chip(stores, memory)
        check_on_chip(dag, job.graph.arrays, schedule, stores, on_chip, memory)
        found.append(
            Outcome(
                memory_bytes=memory,
                makespan_cycles=int(schedule.last_out.max(initial=0)),
                is_replayed=schedule.timing.is_exact,
                io_bytes=on_chip.io_bytes,
                all_io_bytes=sum(store.traffic_bytes for store in stores),
                held_bytes=on_chip.peak_bytes,
                on_chip=tuple(stores[at].name for at in on_chip.stores),
                tasks=dag.tasks_count,
                blocks=schedule.blocks_count,
            )
        )
    return tuple(found)


@cache
def _sources(partition: str) -> str:
    """Return a hash of the sources that turn a graph into an outcome: ours, and the partitioner's module."""
    root = Path(__file__).parents[1]
    stages = (sorted(place.rglob("*.py")) if place.is_dir() else [place] for place in map(root.joinpath, _STAGES))
    module = find_partitioner(partition, collect_partitioners()).module
    spec = find_spec(module)
    of_module = [] if spec is None or spec.origin is None else [Path(spec.origin)]
    files = [*(file for stage in stages for file in stage), *of_module]
    digest = hashlib.sha256(module.encode())
    for package in _PACKAGES:
        digest.update(f"{package} {version(package)}\n".encode())
    for file in files:
        with file.open("rb") as content:
            digest.update(f"{file.name} {hashlib.file_digest(content, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()
