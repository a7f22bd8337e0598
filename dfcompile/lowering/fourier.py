"""Discrete Fourier transforms as constant matrices, of complex numbers that are stored as pairs."""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Matrix = npt.NDArray[np.float64]


class Transform(Struct, frozen=True):
    """A transform of rows of numbers.

    Attributes:
        length: of the transform; of longer rows the rest is cut, behind shorter ones are zeros.
        given: numbers of a row that count, at most the length.
        bins: results that are wanted, the first ones.
        is_inverse: the inverse transform, scaled by its length.
        parts_in: 1 of real numbers, 2 of complex ones.
        parts_out: 1 of real results, 2 of complex ones.
        mirrors: a row is the half of the numbers that a real result has; the others are their conjugates.
    """

    length: int
    given: int
    bins: int
    is_inverse: bool = False
    parts_in: int = 2
    parts_out: int = 2
    mirrors: bool = False

    def matrix(self) -> Matrix:
        """Return ``M[n, part, k, part]``, by which a row is multiplied."""
        turn = 1 if self.is_inverse else -1
        factors = rotations(self.length, np.outer(np.arange(self.given), np.arange(self.bins)), turn)
        if self.is_inverse:
            factors = factors / self.length
        found = pairs(factors)
        if self.mirrors:
            # Each number but the first, and the middle one of an even length, stands for its conjugate as well.
            number = np.arange(self.given)
            counts = np.where((number == 0) | (2 * number == self.length), 1.0, 2.0)
            found = found * counts[:, None, None, None]
        return found[:, : self.parts_in, :, : self.parts_out]


def rotations(length: int, steps: npt.NDArray[np.int64], turn: int) -> npt.NDArray[np.complex128]:
    """Return ``exp(turn * 2j * pi * steps / length)``, exact where it is a quarter turn or none."""
    steps = steps % length
    angle = 2 * np.pi * steps / length
    real, imaginary = np.cos(angle), turn * np.sin(angle)
    real[(4 * steps == length) | (4 * steps == 3 * length)] = 0
    imaginary[(steps == 0) | (2 * steps == length)] = 0
    return real + 1j * imaginary


def pairs(factors: npt.NDArray[np.complex128]) -> Matrix:
    """Return ``F[…, i, j]`` as ``F[…, i, part, j, part]``: the product of a pair with it is that of complex numbers."""
    *outer, i, j = factors.shape
    found = np.empty((*outer, i, 2, j, 2))
    found[..., 0, :, 0], found[..., 0, :, 1] = factors.real, factors.imag
    found[..., 1, :, 0], found[..., 1, :, 1] = -factors.imag, factors.real
    return found


class Stage(Struct, frozen=True):
    """A stage of a fast transform: ``y[p, r, q] = sum_h x[h, p, q] * w[h, p, r]``, in Stockham's order.

    Attributes:
        radix: extent of h and r.
        blocks: extent of p.
        stride: extent of q.
    """

    radix: int
    blocks: int
    stride: int

    def factors(self, turn: int) -> Matrix:
        """Return ``W[p, r, part of y, h, part of x]``."""
        length = self.radix * self.blocks
        h, p, r = np.ogrid[: self.radix, : self.blocks, : self.radix]
        steps = r * (h * self.blocks + p)
        return pairs(rotations(length, steps, turn).transpose(1, 0, 2)).transpose(0, 3, 4, 1, 2)


def stages(length: int) -> tuple[Stage, ...]:
    """Return the stages of a fast transform: one per prime factor of the length, the least first.

    >>> [(stage.radix, stage.blocks, stage.stride) for stage in stages(12)]
    [(2, 6, 1), (2, 3, 2), (3, 1, 4)]
    """
    found = []
    left, stride, radix = length, 1, 2
    while left > 1:
        while left % radix:
            radix = left if radix * radix > left else radix + 1
        left //= radix
        found.append(Stage(radix, left, stride))
        stride *= radix
    return tuple(found)
