"""A plain replay, cycle by cycle with counters for FIFOs: what the simulator has to agree with."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int32
from dfcompile.canonical_dag.hardware import Hardware
from dfcompile.scheduler.simulation import NEVER, Replay
from tests.strategies import DagShape, canonical_dags, with_operators


@dataclass(frozen=True, slots=True)
class PlainTimes:
    """Start and end of each node (``NEVER`` for what does not happen), elements that passed through each FIFO."""

    start: list[int]
    end: list[int]
    passed: list[int]


class _Machine:
    """The clock, the FIFOs and who has ended."""

    def __init__(self, dag: CanonicalDag, replay: Replay) -> None:
        self.now = 0
        self.dag = dag
        self.replay = replay
        self.start = [NEVER] * dag.nodes_count
        self.end = [NEVER] * dag.nodes_count
        # of each FIFO when its elements were written, and its places freed, that nobody has taken
        self.held: list[list[int]] = [[] for _ in range(dag.edges_count)]
        self.free = [[-replay.hardware.hop_cycles] * capacity for capacity in replay.fifo_capacity.tolist()]
        self.passed = [0] * dag.edges_count
        self.progress = 0

    def awaited(self, node: int) -> list[int]:
        replay, dag = self.replay, self.dag
        memory = (dag.edge_target == node) & ~replay.streamed
        awaited: list[int] = dag.edge_source[memory].tolist()
        if dag.is_computational[node]:
            same = (replay.pe == replay.pe[node]) & dag.is_computational & (replay.order < replay.order[node])
            awaited += np.flatnonzero(same).tolist()
        if replay.barrier:
            awaited += np.flatnonzero(replay.block < replay.block[node]).tolist()
        return awaited

    def streamed(self, ends: Int32, node: int) -> list[int]:
        return [int(edge) for edge in np.flatnonzero(self.replay.streamed & (ends == node))]

    def pipeline(self, node: int) -> int:
        hardware, kernel = self.replay.hardware, self.dag.scopes[self.dag.node_scope[node]].kernel
        op = "" if kernel < 0 else self.dag.kernels[kernel].op
        return dict(hardware.pipelines).get(op, hardware.pipeline_cycles)

    def run(self, node: int) -> Iterator[bool]:
        """The life of a node; yields True where a cycle passes, False where it is blocked."""
        dag = self.dag
        awaited = self.awaited(node)
        while any(self.end[other] == NEVER for other in awaited):
            yield False
        self._now(self.start, node)  # of a task with streamed inputs overwritten by its first read
        if dag.is_computational[node]:
            yield from self._work(node, int(dag.volume_in[node]), int(dag.volume_out[node]))
            for _ in range(self.pipeline(node)):
                yield True
        self._now(self.end, node)

    def _work(self, node: int, volume_in: int, volume_out: int) -> Iterator[bool]:
        inputs = np.flatnonzero(self.dag.edge_target == node).tolist()
        outputs = np.flatnonzero(self.dag.edge_source == node).tolist()
        streamed = self.streamed(self.dag.edge_target, node)
        if streamed:
            self.start[node] = NEVER
        reads, writes = volume_in or volume_out, volume_out or volume_in
        read = written = 0
        while read < reads or written < writes:
            if written < read * writes // reads:
                for edge in self._turns(outputs):
                    yield from [True] if edge is None else self._write([edge])
                written += 1
            if written == read * writes // reads and read < reads:
                cycles = 0
                for edge in self._turns(inputs):
                    yield from [True] if edge is None else self._read([edge])
                    cycles += edge is None
                    if not read and streamed and edge == streamed[-1]:
                        self.start[node] = self.now - cycles
                        self.progress += 1
                read += 1
            if read < reads or written < writes:
                yield True

    def _turns(self, edges: list[int]) -> Iterator[int | None]:
        """The streams among some edges; ``None`` where a cycle passes because so many have been accessed."""
        for place, edge in enumerate(edges):
            if place and place % (self.replay.hardware.ports or len(edges)) == 0:
                yield None
            if self.replay.streamed[edge]:
                yield edge

    def _write(self, outputs: list[int]) -> Iterator[bool]:
        for edge in outputs:
            while not self._is_there(self.free[edge]):
                yield False
            self.free[edge].pop(0)
            self.held[edge].append(self.now + self.pipeline(int(self.dag.edge_source[edge])))
            self.progress += 1

    def _read(self, inputs: list[int]) -> Iterator[bool]:
        for edge in inputs:
            while not self._is_there(self.held[edge]):
                yield False
            self.held[edge].pop(0)
            self.free[edge].append(self.now)
            self.passed[edge] += 1
            self.progress += 1

    def _is_there(self, since: list[int]) -> bool:
        return bool(since) and since[0] + self.replay.hardware.hop_cycles <= self.now

    def is_on_its_way(self) -> bool:
        """Whether an element or a place will be there in a later cycle."""
        last = self.now - self.replay.hardware.hop_cycles
        return any(times and times[-1] > last for times in (*self.held, *self.free))

    def _now(self, column: list[int], node: int) -> None:
        column[node] = self.now
        self.progress += 1


def plain_replay(dag: CanonicalDag, replay: Replay) -> PlainTimes:
    """Let every node go on as far as it gets in this cycle, then let the cycle pass."""
    machine = _Machine(dag, replay)
    lives = {node: machine.run(node) for node in range(dag.nodes_count)}
    asleep: set[int] = set()
    while lives:
        before = -1
        while machine.progress != before:
            before = machine.progress
            for node in [node for node in lives if node not in asleep]:
                passes = next(lives[node], None)
                if passes is None:
                    del lives[node]
                elif passes:
                    asleep.add(node)
                    machine.progress += 1
        if lives and not asleep and not machine.is_on_its_way():
            break
        asleep.clear()
        machine.now += 1
    return PlainTimes(machine.start, machine.end, machine.passed)


# Of machines, by type of operator: of none, of all that `with_operators` names, and of one.
PIPELINES = st.sampled_from([(), (("Add", 0), ("Exp", 3)), (("Exp", 7),)])


@st.composite
def replays(
    draw: st.DrawFn,
    *,
    max_volume: int = 24,
    fractional: bool = True,
    buffers: bool = True,
    phases: bool = False,
    all_streamed: bool = False,
    most_capacity: int = 4,
    most_hop: int = 0,
    most_pipeline: int = 0,
) -> tuple[CanonicalDag, Replay]:
    """Random canonical DAGs with random FIFOs, placements, orders and barriers, sensible or not."""
    shape = DagShape(max_volume=max_volume, fractional=fractional, buffers=buffers, phases=phases)
    dag = with_operators(draw(canonical_dags(shape)))
    task = dag.is_computational
    possible = task[dag.edge_source] & task[dag.edge_target]
    chosen = [all_streamed or draw(st.integers(0, 3)) > 0 for _ in range(dag.edges_count)]
    capacity = [draw(st.integers(1, most_capacity)) for _ in range(dag.edges_count)]
    order = np.arange(dag.nodes_count, dtype=np.int64)
    own = np.arange(dag.nodes_count, dtype=np.int32)
    pes = own if draw(st.booleans()) else own % draw(st.integers(1, 6))
    block = own // draw(st.integers(1, 8))
    replay = Replay(
        pe=np.where(task, pes, -1).astype(np.int32),
        order=order,
        streamed=possible & np.array(chosen, dtype=np.bool_),
        fifo_capacity=np.array(capacity, dtype=np.int64),
        block=block.astype(np.int32),
        barrier=draw(st.integers(0, 3)) == 0,
        hardware=Hardware(
            draw(st.integers(0, most_hop)) if most_hop else 0,
            draw(st.integers(0, most_pipeline)) if most_pipeline else 0,
            draw(st.sampled_from((None, None, 1, 2, 3))) if most_pipeline else None,
            draw(PIPELINES) if most_pipeline else (),
        ),
    )
    return dag, replay
