"""Schedules with times from mean streaming intervals: where each task runs, and when if FIFOs throttle nothing."""

from __future__ import annotations

from collections.abc import Callable
from operator import add

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int32, Int64, frozen
from dfcompile.options import Effort, Timing
from dfcompile.records import replace
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.fifo import fifo_capacities, is_no_better_than_memory, relay_elements, with_hops, with_relays
from dfcompile.scheduler.gangs import Gangs, Placing, gang_sequence, gangs_of, place, place_in_order, place_shortest
from dfcompile.scheduler.options import ScheduleOptions
from dfcompile.scheduler.schedules import NO_PE, Schedule
from dfcompile.scheduler.timing import Times, int64_column, peak_volumes, steady_times, streamable_edges

QUICK_NODES = 2**13  # nodes: a placing takes some microseconds for each, by urgency twice as many
_PLACED_IN_ORDER = 2**15


class Plan(Struct, frozen=True, eq=False):
    """What is laid out in time: a partition of a graph.

    Attributes:
        dag: the graph.
        blocks: its blocks.
        options: of the schedule.
        barrier: whether a block waits for the one before.
        memory: which edges go through memory though they could stream; none without, shape [edges].
    """

    dag: CanonicalDag
    blocks: Blocks
    options: ScheduleOptions
    barrier: bool
    memory: Bool | None = None

    def through_memory(self, edges: Bool) -> Plan:
        """Return the plan in which some more edges go through memory, shape [edges]."""
        return replace(self, memory=edges if self.memory is None else self.memory | edges)

    def steady(self) -> Schedule:
        """Return the schedule with steady times and FIFOs by the published rule.

        Where edges are demoted, those whose FIFO would have to hold all of it (but one element) go through memory.

        Raises:
            UserError: a time does not fit in 64 bits.
        """
        streamed = streamable_edges(self.dag, self.blocks.block) & self._may_stream
        capacity, laid_out = self._sized(streamed)
        while self.options.demote:
            kept = streamed & ~is_no_better_than_memory(self.dag, capacity)
            if np.array_equal(kept, streamed):
                break
            streamed = kept
            capacity, laid_out = self._sized(streamed)
        return laid_out()

    def gangs(self, streamed: Bool) -> Gangs:
        """Return the gangs of the blocks; without demotion they may stream to each other."""
        gangs = gangs_of(self.dag, self.blocks, streamed, relay_elements(self.options), self.options.hardware)
        return replace(gangs, relayed=gangs.relayed & self._may_stream)

    @property
    def _may_stream(self) -> Bool:
        return np.ones(self.dag.edges_count, dtype=np.bool_) if self.memory is None else ~self.memory

    def placed(self, gangs: Gangs, streamed: Bool, inside: Int64) -> Schedule:
        """Place gangs one by one; each becomes a block of its own.

        Args:
            gangs: with the times of their nodes.
            streamed: which edges stream inside gangs, shape [edges].
            inside: capacities of these, shape [edges].
        """
        dag, sequence = self.dag, gang_sequence(self.dag, gangs.gang, self.blocks.block)
        placing = self._placing(gangs, sequence)
        position = np.zeros(gangs.count, dtype=np.int32)
        position[placing.sequence] = np.arange(gangs.count)
        begin = [placing.begin[gang] for gang in gangs.gang.tolist()]
        offsets = (gangs.start, gangs.first_out, gangs.last_out)
        start, first_out, last_out = (int64_column(list(map(add, begin, offset))) for offset in offsets)
        times = Times(start, first_out, last_out, peak_volumes(dag, streamed, gangs.hardware))
        block, pe = frozen(position[gangs.gang]), frozen(np.array(placing.pe, dtype=np.int32))
        capacity = with_relays(dag, placing.relayed, inside)
        return self._schedule(block, pe, times, streamed | placing.relayed, capacity)

    def _placing(self, gangs: Gangs, sequence: list[int]) -> Placing:
        """Place gangs in several ways; where a quick answer is wanted of a large graph, in one or two."""
        dag, pes, nodes = self.dag, self.options.pes, self.dag.nodes_count
        if self.options.effort is not Effort.QUICK or nodes <= QUICK_NODES:
            return place_shortest(dag, gangs, pes, sequence)
        in_order = place_in_order(dag, replace(gangs, relayed=np.zeros_like(gangs.relayed)), pes, sequence)
        if nodes > _PLACED_IN_ORDER:
            return in_order
        return min(in_order, place(dag, gangs, pes), key=lambda placing: placing.makespan_cycles)

    def rule_inside(self, gangs: Gangs, streamed: Bool) -> Int64:
        """Return the published capacities of the FIFOs inside gangs, with those off all cycles, shape [edges]."""
        peak = peak_volumes(self.dag, streamed, gangs.hardware)
        alone = Times(int64_column(gangs.start), int64_column(gangs.first_out), int64_column(gangs.last_out), peak)
        return with_hops(
            self.dag, fifo_capacities(self.dag, gangs.gang, streamed, alone, off_cycles=True), gangs.hardware
        )

    def _sized(self, streamed: Bool) -> tuple[Int64, Callable[[], Schedule]]:
        """Return the published capacities of FIFOs, shape [edges], and what lays the plan out with these."""
        if not self.barrier:
            gangs = self.gangs(streamed)
            inside = self.rule_inside(gangs, streamed)
            return inside, lambda: self.placed(gangs, streamed, inside)
        dag, block = self.dag, self.blocks.block
        times = steady_times(dag, self.blocks, streamed, self.options.hardware)
        capacity = with_hops(dag, fifo_capacities(dag, block, streamed, times), self.options.hardware)
        return capacity, lambda: self._schedule(block, own_pes(dag, block), times, streamed, capacity)

    def _schedule(self, block: Int32, pe: Int32, times: Times, streamed: Bool, capacity: Int64) -> Schedule:
        options, cycles = self.options, times.makespan_cycles
        columns = block, pe, times.start, times.first_out, times.last_out, frozen(streamed), capacity
        return Schedule(
            options.pes,
            options.partition,
            self.barrier,
            Timing.STEADY,
            *columns,
            makespan_cycles=cycles,
            hardware=options.hardware,
        )


def own_pes(dag: CanonicalDag, block: Int32) -> Int32:
    """Give each computational node of a block a processing element of its own, in node order."""
    tasks = np.flatnonzero(dag.is_computational)
    tasks = tasks[np.argsort(block[tasks], kind="stable")]
    starts = np.searchsorted(block[tasks], block[tasks], side="left")
    pe = np.full(dag.nodes_count, NO_PE, dtype=np.int32)
    pe[tasks] = np.arange(len(tasks)) - starts
    return frozen(pe)
