"""Tensors of a chip as columns: what sets of kernels stream in and out, hold in SRAM, and leave waiting in DRAM.

And bytes that a configuration moves and holds, for all pairs of many down-sets at once: a configuration is what a
larger down-set has beside a smaller one. A tensor that it makes was not there before: what it takes is the same beside
every such smaller down-set. Of one that was there it only matters how many of its readers are in either. A figure of a
pair is thus a sum of products of what one and the other down-set are like: a product of two matrices. That some of many
readers run takes a column for each of them; it is compared pair by pair instead where they are many. All numbers are
whole and below 2**53: sums are exact.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, wraps
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column, Mask, Members, Numbers

NOBODY = -1  # who makes, or reads, a tensor that no kernel does
Touched = npt.NDArray[np.bool_]  # [set, tensor]


class Users(Struct, frozen=True, eq=False, dict=True):
    """Kernels of each tensor, one tensor behind the other.

    Attributes:
        kernels: numbers; `NOBODY`, the column of nobody, of a tensor without kernels.
        first: place of the first kernel of each tensor.
    """

    kernels: Numbers
    first: Numbers

    @staticmethod
    def of(groups: Sequence[Sequence[int]]) -> "Users":
        """Return the kernels of each tensor as columns."""
        kernels = [kernel for group in groups for kernel in group or (NOBODY,)]
        counts = np.array([max(1, len(group)) for group in groups], np.int64)
        return Users(np.array(kernels, np.intp), np.cumsum(counts) - counts)

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Where the kernels of each tensor begin and end."""
        ends = np.append(self.first, len(self.kernels))[1:]
        return list(zip(self.first.tolist(), ends.tolist(), strict=True))

    def any(self, members: Members) -> Touched:
        """Return of which tensors a set has a kernel; the last column of ``members`` may be nobody's."""
        return np.asarray(self._reduced(np.logical_or, members[:, self.kernels]), bool)

    def all(self, members: Members) -> Touched:
        """Return of which tensors a set has all kernels."""
        return np.asarray(self._reduced(np.logical_and, members[:, self.kernels]), bool)

    def largest(self, members: Members, sizes: Column) -> Column:
        """Return the largest of the sizes of a tensor's kernels in a set, ``[set, tensor]``."""
        return np.asarray(self._reduced(np.maximum, members[:, self.kernels] * sizes), float)

    def some(self, which: Mask) -> "Users":
        """Return the kernels of some tensors."""
        counts = np.diff(np.append(self.first, len(self.kernels)))
        kept = counts[which]
        return Users(self.kernels[np.repeat(which, counts)], np.cumsum(kept) - kept)

    def _reduced(self, ufunc: np.ufunc, columns: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return one column per tensor of those of its kernels; where every tensor has one kernel they are that."""
        is_single = len(self.kernels) == len(self.first)
        return columns if is_single else np.asarray(ufunc.reduceat(columns, self.first, axis=1))


SETS = 256  # at a time: those near to each other touch few of thousands of tensors
FEW_CELLS = 2**18  # sets times kernels that are not worth dividing

_Columns = TypeVar("_Columns", "FlowColumns", "HeldColumns")
_Figure = Callable[[_Columns, Members], Column]


def _in_parts(figure: _Figure[_Columns]) -> _Figure[_Columns]:
    """Let a figure ``[…, set]``, a sum over the tensors that a set touches, be found of few of both at a time."""

    @wraps(figure)
    def in_parts(columns: _Columns, members: Members) -> Column:
        if members.size <= FEW_CELLS:
            return figure(columns, members)
        parts = (members[first : first + SETS] for first in range(0, len(members), SETS))
        found = [figure(columns.touched_by(np.asarray(part.any(axis=0))), part) for part in parts]
        return np.concatenate(found, axis=-1)

    return in_parts


class FlowColumns(Struct, frozen=True, eq=False, dict=True):
    """Tensors that stream between kernels, or between kernels and DRAM; sizes in bytes, of a tile where there are some.

    Attributes:
        source: kernel that makes each, or `NOBODY`.
        readers: kernels that read each.
        is_read: whether anybody reads it.
        leaves: whether it is written to DRAM in any case.
        size: of it, moved.
        border: per reader, of SRAM where it comes from DRAM; of several readers the largest counts.
        inside: per reader, of SRAM where it is made in the same set; of several readers the largest counts.
        written: of SRAM where it is written to DRAM: a tile of it, of which there are two.
    """

    source: Numbers
    readers: Users
    is_read: Touched
    leaves: Touched
    size: Column
    border: Column
    inside: Column
    written: Column

    @staticmethod
    def of_connections(ends: Sequence[tuple[int, int]], size: Column, tile: Column, depth: Column) -> "FlowColumns":
        """Return the columns of tensors with one reader each, given source and reader, size, and tiles in SRAM."""
        return FlowColumns(
            source=np.array([source for source, _ in ends], np.intp),
            readers=Users.of([(reader,) for _, reader in ends]),
            is_read=np.ones(len(ends), bool),
            leaves=np.zeros(len(ends), bool),
            size=size,
            border=2 * tile,
            inside=depth * tile,
            written=tile,
        )

    def touched_by(self, kernels: Mask) -> "FlowColumns":
        """Return the tensors that some kernels make or read."""
        padded = np.append(kernels, values=False)
        touched = padded[self.source] | self.readers.any(padded[None, :])[0]
        reads = np.repeat(touched, np.diff(np.append(self.readers.first, len(self.readers.kernels))))
        return FlowColumns(
            source=self.source[touched],
            readers=self.readers.some(touched),
            is_read=self.is_read[touched],
            leaves=self.leaves[touched],
            size=self.size[touched],
            border=self.border[reads],
            inside=self.inside[reads],
            written=self.written[touched],
        )

    def _padded(self, members: Members) -> Members:
        """Return ``members`` with a last column of nobody, if anything refers to it."""
        has_nobody = (self.source == NOBODY).any() or not self.is_read.all()
        return np.pad(members, ((0, 0), (0, 1))) if has_nobody else members

    def _needed(self, padded: Members) -> Touched:
        """Return which tensors somebody needs who is not in a set."""
        return np.asarray(self.leaves | self.is_read & ~self.readers.all(padded))

    def _read_in(self, padded: Members) -> Touched:
        return self.readers.any(padded) & ~padded[:, self.source]

    def made(self, members: Members) -> Touched:
        """Return which tensors each set makes."""
        return np.asarray(self._padded(members)[:, self.source])

    def written_out(self, members: Members) -> Touched:
        """Return which tensors each set writes to DRAM."""
        padded = self._padded(members)
        return np.asarray(padded[:, self.source] & self._needed(padded))

    @_in_parts
    def streams(self, members: Members) -> Column:
        """Return the bytes that each set reads from DRAM, and those that it writes, ``[2, set]``."""
        read_in = self._read_in(self._padded(members))
        return np.stack([read_in.astype(float) @ self.size, self.written_out(members).astype(float) @ self.size])

    @_in_parts
    def crossing(self, members: Members) -> Column:
        """Return the bytes at the border of each set."""
        return np.asarray((self._read_in(self._padded(members)) | self.written_out(members)).astype(float) @ self.size)

    @_in_parts
    def entering(self, members: Members) -> Column:
        """Return the SRAM of each set for what comes from DRAM: two tiles."""
        padded = self._padded(members)
        return np.asarray((self.readers.largest(padded, self.border) * ~padded[:, self.source]).sum(axis=1))

    def taken_inside(self, members: Members) -> Column:
        """Return the SRAM ``[set, tensor]`` for tiles in flight of what each set makes and reads."""
        padded = self._padded(members)
        return np.asarray(self.readers.largest(padded, self.inside) * padded[:, self.source])

    @_in_parts
    def kept(self, members: Members) -> Column:
        """Return the SRAM of each set for what it makes: tiles in flight, and two of what leaves."""
        found: Column = self.taken_inside(members).sum(axis=1)
        return found + self.written_out(members).astype(float) @ (2 * self.written)

    def waiting(self, before: Members, inside: Members) -> Column:
        """Return the bytes in DRAM while sets run after the kernels of ``before``.

        A tensor waits from the set that makes it, or the first, to the last that reads it, both included; one that is
        read only where it is made never waits, and one that leaves waits to the end.
        """
        earlier, later = self._padded(before), self._padded(before | inside)
        is_there = (self.source == NOBODY) | earlier[:, self.source]
        live = is_there & self._needed(earlier) | ~is_there & later[:, self.source] & self._needed(later)
        return np.asarray(live.astype(float) @ self.size)


class HeldColumns(Struct, frozen=True, eq=False):
    """Tensors that are loaded and then held by each set with one of their kernels; sizes in bytes.

    Attributes:
        users: kernels of each.
        moved: of DRAM traffic.
        size: of SRAM.
    """

    users: Users
    moved: Column
    size: Column

    def inside(self, members: Members) -> Column:
        """Return of which tensors each set has a kernel, as numbers to multiply sizes with."""
        return self.users.any(members).astype(float)

    def touched_by(self, kernels: Mask) -> "HeldColumns":
        """Return the tensors that some kernels hold."""
        touched = self.users.any(np.append(kernels, values=False)[None, :])[0]
        return HeldColumns(self.users.some(touched), self.moved[touched], self.size[touched])

    @_in_parts
    def loaded(self, members: Members) -> Column:
        """Return the DRAM traffic of each set."""
        return self.inside(members) @ self.moved

    @_in_parts
    def held(self, members: Members) -> Column:
        """Return the SRAM of each set."""
        return self.inside(members) @ self.size

    def first(self, sizes: Column, kernels: int) -> Column:
        """Return sizes by the first kernel of each tensor."""
        found = np.zeros(kernels)
        np.add.at(found, self.users.kernels[self.users.first], sizes)
        return found

    def alone(self, sizes: Column, kernels: int) -> Column:
        """Return sizes by kernel, of tensors with one kernel."""
        counts = np.array([end - first for first, end in self.users.places], np.int64)
        return self.first(sizes * (counts == 1), kernels)


BLOCK_BYTES = 2**25  # of what is multiplied at a time: sums of whole numbers are the same in parts
NARROW = 16  # readers of whom each has a column
Figures = npt.NDArray[np.float64]  # [figure, before, after]: DRAM traffic, SRAM, and, where it counts, what is alive


class _Readers(NamedTuple):
    """Kernels of which some run where the tensor that they read is there already."""

    source: int  # kernel that makes it, or `NOBODY`
    kernels: tuple[int, ...]
    moved: float  # bytes of DRAM traffic, then
    taken: float  # bytes of SRAM, then


class PairBytes:
    """Tensors of a chip, and who reads them."""

    def __init__(self, flows: FlowColumns, held: HeldColumns, *, is_dram_free: bool) -> None:
        """Find who reads what.

        Args:
            flows: that stream, in the finest tiles.
            held: weights.
            is_dram_free: whether DRAM holds everything, so that nobody asks what is alive.
        """
        self._flows = flows
        self._is_dram_free = is_dram_free
        readers = [*_readers(flows), *_users(held)]
        narrow = [one for one in readers if len(one.kernels) <= NARROW]
        self._wide = [one for one in readers if len(one.kernels) > NARROW]
        numbers: dict[tuple[int, ...], int] = {}
        group = np.array([numbers.setdefault(one.kernels, len(numbers)) for one in narrow], np.int64)
        self._counted = [np.array(kernels, np.int64) for kernels in numbers]
        # A column for each number of readers that have run before.
        repeats = np.array([len(one.kernels) for one in narrow], np.int64)
        self._done = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        self._group = np.repeat(group, repeats)
        self._source = np.repeat(np.array([one.source for one in narrow], np.int64), repeats)
        self._bytes = np.repeat(np.array([one[2:] for one in narrow]).reshape(len(narrow), 2).T, repeats, axis=1)

    def figures(self, before: Members, after: Members) -> Figures:
        """Return ``[figure, before, after]`` of all pairs of down-sets ``[down-set, kernel]``.

        The figures are DRAM traffic, SRAM in the finest tiles with whole weights, and, unless DRAM is free, what is
        alive there beside weights. Of pairs of which the second does not hold the first they mean nothing.
        """
        found = np.zeros((2 if self._is_dram_free else 3, len(before), len(after)))
        self._add_made(found, before, after)
        self._add_read(found[:2], before, after)
        return found

    def _add_made(self, figures: Figures, before: Members, after: Members) -> None:
        """Add what is written and kept of tensors that are made, and what is alive of all."""
        flows = self._flows.touched_by(_changing(before, after))
        is_open, is_made = ~flows.made(before), flows.made(after)
        used = np.flatnonzero(is_open.any(axis=0) & is_made.any(axis=0))
        written = flows.written_out(after)[:, used].astype(float)
        moved = written * flows.size[used]
        kept = written * (2 * flows.written[used]) + flows.taken_inside(after)[:, used]
        for number, added in enumerate((moved, kept, moved)[: len(figures)]):
            figures[number] += is_open[:, used].astype(float) @ added.T
        if not self._is_dram_free:
            figures[2] += self._flows.waiting(before, np.zeros_like(before))[:, None]

    def _add_read(self, figures: Figures, before: Members, after: Members) -> None:
        """Add what is read and loaded of tensors that are there already."""
        # With a last column of nobody: what nobody makes is there from the beginning.
        is_there = np.concatenate([before, np.ones((len(before), 1), bool)], axis=1)
        runs_more = self._counts(_changing(before, after)[None, :])[0] > 0
        groups = np.flatnonzero(runs_more)
        place = np.cumsum(runs_more) - 1
        done, following = self._counts(before, groups), self._counts(after, groups)
        found = figures.reshape(-1, len(after))
        columns = np.flatnonzero(runs_more[self._group])
        width = max(1, BLOCK_BYTES // (8 * (len(found) + len(after))))
        for start in range(0, len(columns), width):
            part = columns[start : start + width]
            group = place[self._group[part]]
            waits = is_there[:, self._source[part]] & (done[:, group] == self._done[part])
            runs = following[:, group] > self._done[part]
            used = np.flatnonzero(waits.any(axis=0) & runs.any(axis=0))
            taken = self._bytes[:, None, part[used]] * waits[:, used]
            found += taken.reshape(len(found), len(used)) @ runs[:, used].astype(float).T
        for one in self._wide:
            counts = [members[:, one.kernels].sum(axis=1) for members in (before, after)]
            figures += np.array(one[2:])[:, None, None] * (is_there[:, [one.source]] & (counts[1] > counts[0][:, None]))

    def _counts(self, members: Members, groups: Numbers | None = None) -> Numbers:
        """Return how many kernels of each group, or of some, are in each set."""
        counted = self._counted if groups is None else [self._counted[group] for group in groups.tolist()]
        if not counted:
            return np.zeros((len(members), 0), np.int64)
        sizes = np.array([len(kernels) for kernels in counted])
        first = np.cumsum(sizes) - sizes
        return np.add.reduceat(members[:, np.concatenate(counted)].astype(np.int64), first, axis=1)


def _changing(before: Members, after: Members) -> Mask:
    """Return the kernels that are in some larger set and not in all smaller ones."""
    return np.asarray(after.any(axis=0) & ~before.all(axis=0))


def _users(held: HeldColumns) -> Iterator[_Readers]:
    """Yield who loads each weight, and then holds it."""
    for (first, end), size in zip(held.users.places, held.size.tolist(), strict=True):
        yield _Readers(NOBODY, tuple(held.users.kernels[first:end].tolist()), size, size)


def _readers(flows: FlowColumns) -> Iterator[_Readers]:
    """Yield who reads each streaming tensor, and those of them that need more SRAM for it than others."""
    sizes, sources = flows.size.tolist(), flows.source.tolist()
    for number in np.flatnonzero(flows.is_read).tolist():
        first, end = flows.readers.places[number]
        kernels = tuple(flows.readers.kernels[first:end].tolist())
        taken = dict(_neediest(kernels, flows.border[first:end]))
        for group in {kernels: None} | taken:
            yield _Readers(sources[number], group, sizes[number] * (group == kernels), taken.get(group, 0.0))


def _neediest(kernels: tuple[int, ...], sizes: Column) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield the readers that need most SRAM, then more of them, each with what they need more than all others.

    The largest size of some readers is the sum over those groups of which one is among them.
    """
    order = np.argsort(-sizes, kind="stable").tolist()
    for count, (size, less) in enumerate(pairwise([*sizes[order].tolist(), 0.0]), start=1):
        if size > less:
            yield tuple(kernels[place] for place in order[:count]), size - less
