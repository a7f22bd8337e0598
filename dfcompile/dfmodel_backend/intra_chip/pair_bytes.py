"""Bytes that a configuration moves and holds, for all pairs of many down-sets at once.

A configuration is what a larger down-set has beside a smaller one. Of a tensor it only matters how many of its kernels
(its source first, then its readers) are in either: that is its state. A figure of a pair is a sum, over all tensors, of
an entry of a small table, which is a product of two matrices. Tables grow with the square of a tensor's kernels, and
those of what its readers take with the cube: tensors of many kernels, wide ones, have none, and take space
that grows with their kernels only. All numbers are whole and below 2**53: sums are exact.
"""

from collections.abc import Iterator
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column, Members, Numbers
from dfcompile.dfmodel_backend.intra_chip.flow_columns import NOBODY, FlowColumns, HeldColumns, Touched
from dfcompile.distinct import distinct

FIGURES = 3
BLOCK_BYTES = 2**27  # of what is multiplied at a time: sums of whole numbers are the same in parts
NARROW = 16  # readers of a tensor with tables: those of all its readers have 70 kB
Figures = npt.NDArray[np.float64]  # [figure, before, after]: DRAM traffic, SRAM, and, where it counts, what is alive


class WideFlow(Struct, frozen=True, eq=False):
    """A tensor that streams to many kernels; sizes in bytes.

    Attributes:
        source: kernel that makes it, or `NOBODY`.
        readers: kernels that read it.
        leaves: whether it is written to DRAM in any case.
        size: moved.
        border: per reader, of SRAM where it comes from DRAM; the largest counts.
        inside: per reader, of SRAM where it is made in the same configuration; the largest counts.
        written: of SRAM where it is written to DRAM: a tile of it, of which there are two.
    """

    source: int
    readers: Numbers
    leaves: bool
    size: float
    border: Column
    inside: Column
    written: float

    def add_to(self, figures: Figures, before: Members, after: Members) -> None:
        """Add what the tensor moves and holds in configurations from one down-set to another."""
        done, following = (members[:, self.readers].sum(axis=1) for members in (before, after))
        started, made = (_has(members, self.source) for members in (before, after))
        is_written = ~started[:, None] & made[None, :]
        read = following[None, :] - done[:, None]
        out = is_written & (self.leaves | (read < len(self.readers)))
        figures[0] += self.size * (out | (~is_written & (read > 0)))
        figures[1] += 2 * self.written * out
        if not is_written.all():
            figures[1] += ~is_written * _largest_read(self.readers, self.border, before, after)
        if is_written.any():
            figures[1] += is_written * _largest_read(self.readers, self.inside, before, after)
        if len(figures) > 2:
            needed, needed_after = (self.leaves | (count < len(self.readers)) for count in (done, following))
            figures[2] += self.size * ((started & needed)[:, None] | (is_written & needed_after[None, :]))


class WideHeld(Struct, frozen=True, eq=False):
    """A tensor that is loaded and then held by each configuration with one of its many kernels.

    Attributes:
        kernels: that need it.
        size: in bytes, of DRAM traffic and of SRAM.
    """

    kernels: Numbers
    size: float

    def add_to(self, figures: Figures, before: Members, after: Members) -> None:
        """Add what the tensor moves and holds in configurations from one down-set to another."""
        done, following = (members[:, self.kernels].sum(axis=1) for members in (before, after))
        held = self.size * (following[None, :] > done[:, None])
        figures[0] += held
        figures[1] += held


def _has(members: Members, source: int) -> npt.NDArray[np.bool_]:
    """Return which down-sets have the source of a tensor; what nobody makes is there from the beginning."""
    return np.ones(len(members), bool) if source == NOBODY else members[:, source]


def _largest_read(readers: Numbers, sizes: Column, before: Members, after: Members) -> Figures:
    """Return the largest size of the readers in each configuration ``[before, after]``, 0 without one."""
    found = np.zeros((len(before), len(after)))
    changing = np.flatnonzero(after[:, readers].any(axis=0) & ~before[:, readers].all(axis=0))
    for size in distinct(sizes[changing]).tolist():
        equal = readers[changing[sizes[changing] == size]]
        waits, runs = ~before[:, equal], after[:, equal]
        rows, columns = np.flatnonzero(waits.any(axis=1)), np.flatnonzero(runs.any(axis=1))
        here = waits[rows].astype(np.float32) @ runs[columns].astype(np.float32).T > 0
        place = np.ix_(rows, columns)
        found[place] = np.where(here, size, found[place])
    return found


class StateTable(Struct, frozen=True):
    """What a tensor adds to the figures of a pair.

    Attributes:
        watched: kernels that are counted.
        figures: ``[figure, state before, state after]`` in bytes.
    """

    watched: tuple[int, ...]
    figures: npt.NDArray[np.float64]


class PairBytes(Struct, frozen=True, dict=True):
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
        for number, places in enumerate(self.flows.readers.places):
            if not self._is_wide(number, places):
                yield from _flow_tables(self.flows, number)
        for (first, end), size in zip(self.held.users.places, self.held.size.tolist(), strict=True):
            if end - first > NARROW:
                continue
            before, after = _states(end - first)
            held = np.where(after > before, size, 0.0)
            kernels = tuple(self.held.users.kernels[first:end].tolist())
            yield StateTable(kernels, np.stack([held, held, np.zeros_like(held)]))

    def _is_wide(self, number: int, places: tuple[int, int]) -> bool:
        """Return whether a tensor that streams is read by many kernels; one that nobody reads has a place, too."""
        return bool(self.flows.is_read[number]) and places[1] - places[0] > NARROW

    @cached_property
    def _wide(self) -> tuple[WideFlow | WideHeld, ...]:
        """Tensors without a table."""
        flows, held = self.flows, self.held
        return (
            *(
                WideFlow(
                    source=int(flows.source[number]),
                    readers=flows.readers.kernels[first:end],
                    leaves=bool(flows.leaves[number]),
                    size=float(flows.size[number]),
                    border=flows.border[first:end],
                    inside=flows.inside[first:end],
                    written=float(flows.written[number]),
                )
                for number, (first, end) in enumerate(flows.readers.places)
                if self._is_wide(number, (first, end))
            ),
            *(
                WideHeld(held.users.kernels[first:end], size)
                for (first, end), size in zip(held.users.places, held.size.tolist(), strict=True)
                if end - first > NARROW
            ),
        )

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

    @cached_property
    def _watched(self) -> Numbers:
        """Kernels of all tables, one behind the other."""
        return np.array([kernel for table in self._tables for kernel in table.watched], np.int64)

    def _states(self, members: Members) -> Numbers:
        """Return the state of each tensor in each down-set ``[down-set, kernel]``."""
        if not len(self._watched):
            return np.zeros((len(members), 0), np.int64)
        first = np.cumsum(self._sizes - 1) - (self._sizes - 1)
        return np.add.reduceat(members[:, self._watched].astype(np.int32), first, axis=1, dtype=np.int64)

    def figures(self, before: Members, after: Members) -> npt.NDArray[np.float64]:
        """Return ``[figure, before, after]`` of all pairs of down-sets ``[down-set, kernel]``.

        The figures are DRAM traffic, SRAM in the finest tiles with whole weights, and, unless DRAM is free, what is
        alive there beside weights. Of pairs of which the second does not hold the first they mean nothing.
        """
        found = self._figures_of_tables(self._states(before), self._states(after))
        for tensor in self._wide:
            tensor.add_to(found, before, after)
        return found

    def _figures_of_tables(self, before: Numbers, after: Numbers) -> npt.NDArray[np.float64]:
        low = np.minimum(before.min(axis=0, initial=1 << 30), after.min(axis=0, initial=1 << 30))
        high = np.maximum(before.max(axis=0, initial=0), after.max(axis=0, initial=0))
        if self.is_dram_free:  # a tensor whose state is the same everywhere moves nothing
            high = np.where(high > low, high, low - 1)
        table = np.repeat(np.arange(len(self._tables)), high - low + 1)
        first = np.cumsum(high - low + 1) - (high - low + 1)
        state = np.arange(len(table)) - np.repeat(first, high - low + 1) + low[table]
        width = max(1, BLOCK_BYTES // (8 * (len(self._entries) * len(before) + len(after))))
        found = np.zeros((len(self._entries) * len(before), len(after)))
        for start in range(0, len(table), width):
            part, is_at = table[start : start + width], state[start : start + width]
            entry = self._first[part] + before[:, part] * self._sizes[part] + is_at
            taken = self._entries[:, entry]  # [figure, before, column]
            is_there = (after[:, part] == is_at).astype(float)
            found += taken.reshape(len(found), len(part)) @ is_there.T
        return found.reshape(len(self._entries), len(before), len(after))


@cache  # few: no table is of many kernels
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
    sizes = np.array([size, 2 * float(flows.written[number]), size])
    yield StateTable((*source, *readers), sizes[:, None, None] * _moves(len(source), len(readers), leaves=leaves))
    border, inside = (column[first : first + len(readers)].tolist() for column in (flows.border, flows.inside))
    yield from _largest(source, readers, border, is_inside=False)
    if source:
        yield from _largest(source, readers, inside, is_inside=True)


@cache
def _moves(sources: int, readers: int, *, leaves: bool) -> Touched:
    """Return in which pairs of states a streaming tensor is moved, is written, and is alive."""
    before, after = _states(sources + readers)
    started = before >= sources
    written = ~started & (after >= sources)
    done, following = (np.maximum(states - sources, 0) for states in (before, after))
    read = following - done
    out = written & (leaves | (read < readers))
    needed, needed_after = (leaves | (states < readers) for states in (done, following))
    return np.stack([out | (~written & (read > 0)), out, (started & needed) | (written & needed_after)])


def _largest(
    source: tuple[int, ...], readers: tuple[int, ...], sizes: list[float], *, is_inside: bool
) -> Iterator[StateTable]:
    """Yield tables that add up to the largest size of the readers in a configuration, with the source or without."""
    order = sorted(range(len(readers)), key=lambda place: -sizes[place])
    for count, place in enumerate(order, start=1):
        added = sizes[place] - (sizes[order[count]] if count < len(order) else 0)
        if added:
            here = _reads(len(source), count, is_inside=is_inside)
            figures = np.zeros((FIGURES, *here.shape))
            figures[1] = added * here
            yield StateTable((*source, *(readers[place] for place in order[:count])), figures)


@cache
def _reads(sources: int, readers: int, *, is_inside: bool) -> Touched:
    """Return in which pairs of states one of the readers runs, with the source or without."""
    before, after = _states(sources + readers)
    written = (before < sources) & (after >= sources)
    read = np.maximum(after - sources, 0) - np.maximum(before - sources, 0)
    return np.asarray((written if is_inside else ~written) & (read > 0))
