"""What tensors of many kernels add to the bytes of pairs of down-sets, in space that grows with their kernels only."""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column, Members, Numbers
from dfcompile.dfmodel_backend.intra_chip.flow_columns import NOBODY
from dfcompile.distinct import distinct

Figures = npt.NDArray[np.float64]  # [figure, before, after]: DRAM traffic, SRAM, and, where it counts, what is alive
Touched = npt.NDArray[np.bool_]  # [before, after]


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
            figures[1] += ~is_written * _largest(self.readers, self.border, before, after)
        if is_written.any():
            figures[1] += is_written * _largest(self.readers, self.inside, before, after)
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


def _largest(readers: Numbers, sizes: Column, before: Members, after: Members) -> Figures:
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
