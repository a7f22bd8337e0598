"""Bytes that a configuration moves and holds, for all pairs of many down-sets at once.

A configuration is what a larger down-set has beside a smaller one. Of a tensor it only matters how many of its kernels
(its source first, then its readers) are in either: that is its state. A figure of a pair is a sum, over all tensors, of
an entry of a small table, which is a product of two matrices. All numbers are whole and below 2**53: sums are exact.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Column, Members, Numbers
from dfcompile.dfmodel_backend.intra_chip.flow_columns import NOBODY, FlowColumns, HeldColumns

FIGURES = 3


@dataclass(frozen=True, slots=True)
class StateTable:
    """What a tensor adds to the figures of a pair.

    Attributes:
        watched: kernels that are counted.
        figures: ``[figure, state before, state after]`` in bytes.
    """

    watched: tuple[int, ...]
    figures: npt.NDArray[np.float64]


@dataclass(frozen=True)
class PairBytes:
    """Tables of all tensors of a chip, as one matrix of states.

    Attributes:
        flows: that stream, in the finest tiles.
        held: weights.
        is_dram_free: whether DRAM holds everything, so that nobody asks what is alive.
    """

    flows: FlowColumns
    held: HeldColumns
    is_dram_free: bool

    @cached_property
    def _tables(self) -> tuple[StateTable, ...]:
        """Tables of the same kernels are one."""
        found: dict[tuple[int, ...], npt.NDArray[np.float64]] = {}
        for table in self._all_tables():
            known = found.get(table.watched)
            found[table.watched] = table.figures if known is None else known + table.figures
        return tuple(StateTable(watched, figures) for watched, figures in found.items())

    def _all_tables(self) -> Iterator[StateTable]:
        for number in range(len(self.flows.source)):
            yield from _flow_tables(self.flows, number)
        for (first, end), size in zip(self.held.users.places, self.held.size.tolist(), strict=True):
            before, after = _states(end - first)
            held = np.where(after > before, size, 0.0)
            kernels = tuple(self.held.users.kernels[first:end].tolist())
            yield StateTable(kernels, np.stack([held, held, np.zeros_like(held)]))

    @cached_property
    def _entries(self) -> Column:
        """All tables, one behind the other, per figure: ``[figure, entry]``."""
        found = np.concatenate(
            [np.zeros((FIGURES, 0)), *(t.figures.reshape(FIGURES, -1) for t in self._tables)], axis=1
        )
        return found[: FIGURES - 1] if self.is_dram_free else found

    @cached_property
    def _sizes(self) -> Numbers:
        return np.array([len(table.watched) + 1 for table in self._tables], np.int64)

    @cached_property
    def _first(self) -> Numbers:
        """Place of the first entry of each table."""
        return np.cumsum(self._sizes**2) - self._sizes**2

    def states(self, members: Members) -> Numbers:
        """Return the state of each tensor in each down-set ``[down-set, kernel]``."""
        counted = members.astype(np.int32)
        watched = np.array([kernel for table in self._tables for kernel in table.watched], np.int64)
        if not len(watched):
            return np.zeros((len(members), 0), np.int64)
        first = np.cumsum(self._sizes - 1) - (self._sizes - 1)
        return np.add.reduceat(counted[:, watched], first, axis=1, dtype=np.int64)

    def figures(self, before: Numbers, after: Numbers) -> npt.NDArray[np.float64]:
        """Return ``[figure, before, after]`` of all pairs of down-sets, given by their states.

        The figures are DRAM traffic, SRAM in the finest tiles with whole weights, and, unless DRAM is free, what is
        alive there beside weights.
        """
        low = np.minimum(before.min(axis=0, initial=1 << 30), after.min(axis=0, initial=1 << 30))
        high = np.maximum(before.max(axis=0, initial=0), after.max(axis=0, initial=0))
        if self.is_dram_free:  # a tensor whose state is the same everywhere moves nothing
            high = np.where(high > low, high, low - 1)
        table = np.repeat(np.arange(len(self._tables)), high - low + 1)
        first = np.cumsum(high - low + 1) - (high - low + 1)
        state = np.arange(len(table)) - np.repeat(first, high - low + 1) + low[table]
        entry = self._first[table] + before[:, table] * self._sizes[table] + state
        taken = self._entries[:, entry]  # [figure, before, column]
        is_there = (after[:, table] == state).astype(float)
        found = taken.reshape(len(taken) * len(before), len(table)) @ is_there.T
        return np.asarray(found.reshape(len(taken), len(before), len(after)))


def _states(watched: int) -> tuple[Numbers, Numbers]:
    states = np.arange(watched + 1)
    return states[:, None] + 0 * states, states + 0 * states[:, None]


def _flow_tables(flows: FlowColumns, number: int) -> Iterator[StateTable]:
    """Yield the table of a streaming tensor, and one for each reader that needs more SRAM than those before it."""
    first, end = flows.readers.places[number]
    maker, leaves, size = int(flows.source[number]), bool(flows.leaves[number]), float(flows.size[number])
    readers = tuple(flows.readers.kernels[first:end].tolist()) if flows.is_read[number] else ()
    source = () if maker == NOBODY else (maker,)
    if not source and not readers:
        return
    before, after = _states(len(source) + len(readers))
    started = before >= len(source)
    written = ~started & (after >= len(source))
    done, following = (np.maximum(states - len(source), 0) for states in (before, after))
    read = following - done
    out = written & (leaves | (read < len(readers)))
    traffic = size * (out | (~written & (read > 0)))
    needed, needed_after = (leaves | (states < len(readers)) for states in (done, following))
    alive = size * ((started & needed) | (written & needed_after))
    leaving = 2 * float(flows.written[number]) * out
    yield StateTable((*source, *readers), np.stack([traffic, leaving, alive]))
    border, inside = (column[first : first + len(readers)].tolist() for column in (flows.border, flows.inside))
    yield from _largest(source, readers, border, is_inside=False)
    if source:
        yield from _largest(source, readers, inside, is_inside=True)


def _largest(
    source: tuple[int, ...], readers: tuple[int, ...], sizes: list[float], *, is_inside: bool
) -> Iterator[StateTable]:
    """Yield tables that add up to the largest size of the readers in a configuration, with the source or without."""
    order = sorted(range(len(readers)), key=lambda place: -sizes[place])
    for count, place in enumerate(order, start=1):
        added = sizes[place] - (sizes[order[count]] if count < len(order) else 0)
        if added:
            before, after = _states(len(source) + count)
            written = (before < len(source)) & (after >= len(source))
            read = np.maximum(after - len(source), 0) - np.maximum(before - len(source), 0)
            here = (written if is_inside else ~written) & (read > 0)
            nothing = np.zeros(here.shape)
            yield StateTable(
                (*source, *(readers[place] for place in order[:count])), np.stack([nothing, added * here, nothing])
            )
