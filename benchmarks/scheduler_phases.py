"""Measures the phases of scheduling one generated graph, in a process of its own; prints a JSON list.

``python -m benchmarks.scheduler_phases GENERATOR SIZE SEED PES PART``, with a negative seed for elementwise tasks.
"""

import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from dfcompile.canonical_dag import CanonicalDag, critical_path, streaming_depth
from dfcompile.generators.canonical_dags import cholesky, fft, gaussian
from dfcompile.scheduler import ScheduleOptions, Timing, collect_partitioners, lower_bound_cycles, schedule
from dfcompile.scheduler import schedule_non_streaming as non_streaming
from dfcompile.scheduler.fifo import fifo_capacities
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of
from dfcompile.scheduler.timing import steady_times, streamable_edges

VOLUME = 2048
PARTITION = "sb-rlx"
GENERATORS: dict[str, Callable[..., CanonicalDag]] = {"fft": fft, "gaussian": gaussian, "cholesky": cholesky}

Result = TypeVar("Result")


class PhaseClock:
    """CPU seconds of each phase, and the largest memory of the process at its end."""

    def __init__(self) -> None:
        self.phases: list[dict[str, float | str]] = []

    def run(self, phase: str, work: Callable[[], Result]) -> Result:
        """Run a phase and note what it took."""
        gc.collect()
        begin = time.process_time()
        result = work()
        seconds = time.process_time() - begin
        self.phases.append({"phase": phase, "cpu_s": round(seconds, 4), "peak_memory_mb": peak_memory_mb()})
        return result


def peak_memory_mb() -> float:
    """Return the peak of this process; that of ``getrusage`` begins with the parent's."""
    status = Path("/proc/self/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1000


def schedule_phases(clock: PhaseClock, dag: CanonicalDag, pes: int) -> None:
    """Go through the phases of the streaming schedule, then through the bounds."""
    partitioner = collect_partitioners()[PARTITION]
    blocks = clock.run("partition", lambda: partitioner.partition(dag, pes))
    streamed = clock.run("streamed edges", lambda: streamable_edges(dag, blocks.block))
    times = clock.run("intervals and times", lambda: steady_times(dag, blocks, streamed))
    clock.run("fifo sizes", lambda: fifo_capacities(dag, blocks.block, streamed, times))
    clock.run("lower bound", lambda: lower_bound_cycles(dag, pes))
    clock.run("depths", lambda: (critical_path(dag), streaming_depth(dag)))


def baseline_phases(clock: PhaseClock, dag: CanonicalDag, pes: int) -> None:
    """Go through the schedule without streaming."""
    clock.run("non-streaming (eft)", lambda: non_streaming(dag, pes))


def simulation_phases(clock: PhaseClock, dag: CanonicalDag, pes: int) -> None:
    """Replay the schedule."""
    found = schedule(dag, ScheduleOptions(pes, PARTITION, timing=Timing.STEADY))
    clock.run("simulate", lambda: simulate(dag, replay_of(found)))


PARTS = {"schedule": schedule_phases, "baseline": baseline_phases, "simulation": simulation_phases}


def main(generator: str, size: int, seed: int, pes: int, part: str) -> None:
    """Measure and print."""
    clock = PhaseClock()
    dag = clock.run("generate", lambda: GENERATORS[generator](size, VOLUME, None if seed < 0 else seed))
    PARTS[part](clock, dag, pes)
    print(json.dumps({"tasks": dag.tasks_count, "edges": dag.edges_count, "phases": clock.phases}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
