"""Tensors of a chip as columns: what sets of kernels stream in and out, hold in SRAM, and leave waiting in DRAM."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column, Members, Numbers

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
    def is_single(self) -> bool:
        """Whether every tensor has one kernel."""
        return len(self.kernels) == len(self.first)

    @cached_property
    def places(self) -> list[tuple[int, int]]:
        """Where the kernels of each tensor begin and end."""
        ends = np.append(self.first, len(self.kernels))[1:]
        return list(zip(self.first.tolist(), ends.tolist(), strict=True))

    def any(self, members: Members) -> Touched:
        """Return of which tensors a set has a kernel; the last column of ``members`` may be nobody's."""
        found = members[:, self.kernels]
        return found if self.is_single else np.logical_or.reduceat(found, self.first, axis=1)

    def all(self, members: Members) -> Touched:
        """Return of which tensors a set has all kernels."""
        found = members[:, self.kernels]
        return found if self.is_single else np.logical_and.reduceat(found, self.first, axis=1)

    def largest(self, members: Members, sizes: Column) -> Column:
        """Return the largest of the sizes of a tensor's kernels in a set, ``[set, tensor]``."""
        found = members[:, self.kernels] * sizes
        return np.asarray(found if self.is_single else np.maximum.reduceat(found, self.first, axis=1))


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

    @cached_property
    def _has_nobody(self) -> bool:
        return bool((self.source == NOBODY).any() or not self.is_read.all())

    def _padded(self, members: Members) -> Members:
        """Return ``members`` with a last column of nobody, if anything refers to it."""
        return np.pad(members, ((0, 0), (0, 1))) if self._has_nobody else members

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

    def streams(self, members: Members) -> tuple[Column, Column]:
        """Return the bytes that each set reads from DRAM, and those that it writes."""
        read_in = self._read_in(self._padded(members))
        return read_in.astype(float) @ self.size, self.written_out(members).astype(float) @ self.size

    def crossing(self, members: Members) -> Column:
        """Return the bytes at the border of each set."""
        crosses = self._read_in(self._padded(members)) | self.written_out(members)
        return np.asarray(crosses.astype(float) @ self.size)

    def entering(self, members: Members) -> Column:
        """Return the SRAM of each set for what comes from DRAM: two tiles."""
        padded = self._padded(members)
        return np.asarray((self.readers.largest(padded, self.border) * ~padded[:, self.source]).sum(axis=1))

    def taken_inside(self, members: Members) -> Column:
        """Return the SRAM ``[set, tensor]`` for tiles in flight of what each set makes and reads."""
        padded = self._padded(members)
        return np.asarray(self.readers.largest(padded, self.inside) * padded[:, self.source])

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
        made = later[:, self.source] & self._needed(later)
        live = is_there & self._needed(earlier) | ~is_there & made
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

    def first(self, sizes: Column, kernels: int) -> Column:
        """Return sizes by the first kernel of each tensor."""
        found = np.zeros(kernels)
        np.add.at(found, self.users.kernels[self.users.first], sizes)
        return found

    def alone(self, sizes: Column, kernels: int) -> Column:
        """Return sizes by kernel, of tensors with one kernel."""
        counts = np.array([end - first for first, end in self.users.places], np.int64)
        return self.first(sizes * (counts == 1), kernels)
