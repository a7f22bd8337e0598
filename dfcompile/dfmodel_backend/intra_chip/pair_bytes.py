"""Bytes that a configuration moves and holds, for all pairs of many down-sets at once.

A configuration is what a larger down-set has beside a smaller one. Of a tensor it only matters whether its source is in
either, and how many of its readers are. A figure of a pair is a sum over terms, each a number of bytes that counts
where the smaller down-set is in one state and the larger one in another: a product of two matrices. That some of many
readers run takes a term for each of them; it is compared pair by pair instead where they are many. All numbers are
whole and below 2**53: sums are exact.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Column, Members, Numbers
from dfcompile.dfmodel_backend.intra_chip.flow_columns import NOBODY, FlowColumns, HeldColumns

BLOCK_BYTES = 2**25  # of what is multiplied at a time: sums of whole numbers are the same in parts
NARROW = 16  # readers of whom each has a term
Figures = npt.NDArray[np.float64]  # [figure, before, after]: DRAM traffic, SRAM, and, where it counts, what is alive


class _Readers(NamedTuple):
    """Bytes that count where some of the readers of a tensor run, and what they read is there already."""

    source: int  # kernel that makes the tensor, or `NOBODY`
    kernels: tuple[int, ...]
    figures: tuple[float, float, float]


class _Term(NamedTuple):
    """Bytes that count where two down-sets have some of a tensor's kernels; the larger one has its source."""

    source: int  # kernel that makes the tensor, or `NOBODY`
    is_there: bool  # whether the smaller down-set has it, too
    kernels: tuple[int, ...]  # that are counted
    before: tuple[int, int]  # fewest and most of them in the smaller down-set
    after: tuple[int, int]  # the same of the larger one
    figures: tuple[float, float, float]


class PairBytes:
    """Terms of all tensors of a chip, as columns."""

    def __init__(self, flows: FlowColumns, held: HeldColumns, *, is_dram_free: bool) -> None:
        """Find the terms.

        Args:
            flows: that stream, in the finest tiles.
            held: weights.
            is_dram_free: whether DRAM holds everything, so that nobody asks what is alive.
        """
        figures = slice(2 if is_dram_free else 3)
        readers = [*_readers(flows), *_users(held)]
        terms = [term for term in _terms(flows) if any(term.figures[figures])]
        terms += [term for one in readers if len(one.kernels) <= NARROW for term in _one_by_one(one)]
        self._wide = [(*one[:2], np.array(one.figures[figures])) for one in readers if len(one.kernels) > NARROW]
        numbers: dict[tuple[int, ...], int] = {}
        self._group = np.array([numbers.setdefault(term.kernels, len(numbers)) for term in terms], np.int64)
        self._counted = [np.array(kernels, np.int64) for kernels in numbers]
        self._source = np.array([term.source for term in terms], np.int64)
        self._is_there = np.array([term.is_there for term in terms], bool)
        self._before = np.array([term.before for term in terms], np.int32).reshape(-1, 2)
        self._after = np.array([term.after for term in terms], np.int32).reshape(-1, 2)
        self._figures = np.array([term.figures[figures] for term in terms]).reshape(len(terms), figures.stop).T

    def figures(self, before: Members, after: Members) -> Figures:
        """Return ``[figure, before, after]`` of all pairs of down-sets ``[down-set, kernel]``.

        The figures are DRAM traffic, SRAM in the finest tiles with whole weights, and, unless DRAM is free, what is
        alive there beside weights. Of pairs of which the second does not hold the first they mean nothing.
        """
        figures = len(self._figures)
        found = np.zeros((figures * len(before), len(after)))
        counts = self._counts(before), self._counts(after)
        smaller, larger = _with_nobody(before), _with_nobody(after)
        width = max(1, BLOCK_BYTES // (8 * (figures * len(before) + len(after))))
        for start in range(0, len(self._group), width):
            part = slice(start, start + width)
            source = self._source[part]
            is_before = (smaller[:, source] == self._is_there[part]) & self._within(counts[0], self._before, part)
            is_after = larger[:, source] & self._within(counts[1], self._after, part)
            used = np.flatnonzero(is_before.any(axis=0) & is_after.any(axis=0))
            taken = self._figures[:, None, part][:, :, used] * is_before[:, used]
            found += taken.reshape(len(found), len(used)) @ is_after[:, used].astype(float).T
        pairs = found.reshape(figures, len(before), len(after))
        for source_of_all, kernels, sizes in self._wide:
            done, following = (members[:, kernels].sum(axis=1) for members in (before, after))
            pairs += sizes[:, None, None] * (smaller[:, [source_of_all]] & (following > done[:, None]))
        return pairs

    def _counts(self, members: Members) -> Numbers:
        """Return how many kernels of each group are in each down-set."""
        if not self._counted:
            return np.zeros((len(members), 0), np.int64)
        sizes = np.array([len(kernels) for kernels in self._counted])
        return np.add.reduceat(
            members[:, np.concatenate(self._counted)].astype(np.int32), np.cumsum(sizes) - sizes, axis=1
        )

    def _within(self, counts: Numbers, limits: npt.NDArray[np.int32], part: slice) -> Members:
        found = counts[:, self._group[part]]
        return (limits[part, 0] <= found) & (found <= limits[part, 1])


def _with_nobody(members: Members) -> Members:
    """Return down-sets with a last column of nobody: what nobody makes is there from the beginning."""
    return np.concatenate([members, np.ones((len(members), 1), bool)], axis=1)


def _one_by_one(readers: _Readers) -> Iterator[_Term]:
    """Yield a term for each number of readers that have run before."""
    source, kernels, figures = readers
    for done in range(len(kernels)):
        yield _Term(source, True, kernels, (done, done), (done + 1, len(kernels)), figures)


def _users(held: HeldColumns) -> Iterator[_Readers]:
    """Yield who loads each weight, and then holds it."""
    for (first, end), size in zip(held.users.places, held.size.tolist(), strict=True):
        yield _Readers(NOBODY, tuple(held.users.kernels[first:end].tolist()), (size, size, 0.0))


def _readers(flows: FlowColumns) -> Iterator[_Readers]:
    """Yield who reads each streaming tensor from DRAM, and those that need more SRAM for it than others."""
    for number, (source, kernels, (first, end)) in enumerate(_ends(flows)):
        moved = {kernels: float(flows.size[number])} if kernels else {}
        taken = dict(_neediest(kernels, flows.border[first:end]))
        for group in moved | taken:
            yield _Readers(source, group, (moved.get(group, 0.0), taken.get(group, 0.0), 0.0))


def _terms(flows: FlowColumns) -> Iterator[_Term]:
    """Yield what streaming tensors take where they are made, written, and alive."""
    for number, (source, kernels, (first, end)) in enumerate(_ends(flows)):
        size, written = float(flows.size[number]), 2 * float(flows.written[number])
        if source == NOBODY and not kernels:
            continue
        counted = kernels or (source,)
        always = (0, len(counted))
        needed = always if flows.leaves[number] else (0, len(kernels) - 1)  # as long as not all readers have run
        yield _Term(source, True, counted, needed, always, (0.0, 0.0, size))
        if source != NOBODY:
            yield _Term(source, False, counted, always, needed, (size, written, size))
            for neediest, more in _neediest(kernels, flows.inside[first:end]):
                every = len(neediest)
                yield _Term(source, False, neediest, (0, every), (1, every), (0.0, more, 0.0))


def _ends(flows: FlowColumns) -> Iterator[tuple[int, tuple[int, ...], tuple[int, int]]]:
    """Yield source and readers of each tensor, and where these begin and end."""
    for source, (first, end), is_read in zip(flows.source.tolist(), flows.readers.places, flows.is_read, strict=True):
        yield source, tuple(flows.readers.kernels[first:end].tolist()) if is_read else (), (first, end)


def _neediest(kernels: tuple[int, ...], sizes: Column) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield the readers that need most SRAM, then more of them, each with what they need more than all others.

    The largest size of some readers is the sum over those groups of which one is among them.
    """
    order = np.argsort(-sizes, kind="stable").tolist() if kernels else []
    steps = pairwise([*sizes[order].tolist(), 0.0])
    for count, (size, less) in enumerate(steps, start=1):
        if size > less:
            yield tuple(kernels[place] for place in order[:count]), size - less
