"""Random choices of one case: everything follows from its seed."""

import random
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.generic]
Choice = TypeVar("Choice")

MOST_ELEMENTS = 600  # of a drawn tensor, so that a case takes milliseconds
EXTENTS = (1, 1, 2, 2, 3, 3, 4, 5)
SPECIAL = {
    "float16": (np.nan, np.inf, -np.inf, -0.0, 20, -20, 6e-8, 0.5, 1.5, 2.5),
    # Nothing larger: which intermediate result overflows, or cancels, is up to an implementation.
    "float32": (np.nan, np.inf, -np.inf, -0.0, 20, -20, 1e-40, 0.5, 1.5, 2.5),
    "float64": (np.nan, np.inf, -np.inf, -0.0, 20, -20, 1e-310, 0.5, 1.5, 2.5),
}


class Draw:
    """Draws from one seed.

    Attributes:
        preferred: data type and shape of a value that the next node could take, ``None`` if there is none.
        edges: whether operands hold values such as NaN here and there.
        variable: how often an operand that says a shape, axes or the like is an input.
        empties: how often a dimension has no elements.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._values = np.random.default_rng(self._random.getrandbits(63))
        self.preferred: tuple[str, tuple[int, ...]] | None = None
        self.edges = self.chance(0.15)
        self.variable = 0.03
        self.empties = 0.002

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def integer(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def choice(self, among: Sequence[Choice]) -> Choice:
        return self._random.choice(among)

    def some(self, among: Sequence[Choice], least: int = 0) -> list[Choice]:
        """Return a few of the given ones, in a random order."""
        return self._random.sample(among, self.integer(min(least, len(among)), len(among)))

    def sizes(self, count: int, least: int, most: int) -> list[int]:
        return [self.integer(least, most) for _ in range(count)]

    def extent(self) -> int:
        return 0 if self.chance(self.empties) else self.choice(EXTENTS)

    def shape(self, least: int = 0, most: int = 4) -> tuple[int, ...]:
        """Return a shape of as many dimensions, preferably that of a value at hand."""
        if self.preferred and least <= len(self.preferred[1]) <= most and self.chance(0.8):
            return tuple(max(extent, 1) for extent in self.preferred[1])  # ONNX infers windows beyond the data
        shape = [self.extent() for _ in range(self.integer(least, most))]
        while np.prod(shape, dtype=np.int64) > MOST_ELEMENTS:
            shape[shape.index(max(shape))] = 1
        return tuple(shape)

    def operand_shapes(self, full: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
        """Return shapes that broadcast to the given one; one of them is it."""
        found = [self._narrowed(full) for _ in range(count)]
        found[self.integer(0, count - 1)] = full
        return found

    def _narrowed(self, full: tuple[int, ...]) -> tuple[int, ...]:
        if self.chance(0.5):
            return full
        return tuple(1 if self.chance(0.3) else size for size in full[self.integer(0, len(full)) :])

    def axis(self, rank: int) -> int:
        return self.integer(-rank, rank - 1)

    def axes(self, rank: int, least: int = 0) -> list[int]:
        """Return different axes in any order, some of them counted from the end."""
        return [axis - rank if self.chance(0.3) else axis for axis in self.some(range(rank), least)]

    def dtype(self, allowed: Sequence[str]) -> str:
        """Return a data type: that of a value at hand, the usual one, or any."""
        if self.preferred and self.preferred[0] in allowed and self.chance(0.9):
            return self.preferred[0]
        if "float32" in allowed and self.chance(0.6):
            return "float32"
        return self.choice(allowed)

    def real(self) -> float:
        """Return a number that half precision holds exactly."""
        return self.integer(-16, 16) / 8

    def array(self, dtype: str, shape: Sequence[int]) -> Array:
        """Return values that are exact in every type, with a few special ones if there are to be edges."""
        kind = np.dtype(dtype).kind
        if kind == "b":
            return self._values.integers(0, 2, shape).astype(bool)
        if kind in "iu":
            whole = self._values.integers(-9 if kind == "i" else 0, 10, shape).astype(dtype)
            return self._with(whole, (np.iinfo(dtype).max, np.iinfo(dtype).min), 0.3)
        values = (self._values.integers(-32, 33, shape) / 8).astype(dtype)
        return self._with(values, SPECIAL.get(dtype, ()), 1.0)

    def eighths(self, dtype: str, shape: Sequence[int], least: int, most: int) -> Array:
        """Return multiples of 1/8, of which the bounds are given."""
        return np.asarray(self._values.integers(least, most + 1, shape) / 8).astype(dtype)

    def whole(self, shape: Sequence[int], least: int, most: int, dtype: str = "int64") -> Array:
        """Return integers between two bounds."""
        return np.asarray(self._values.integers(least, most + 1, shape)).astype(dtype)

    def divisors(self, dtype: str, shape: Sequence[int]) -> Array:
        """Return integers that are not zero, whose quotients are all defined."""
        sign = self._values.choice([-1, 1] if np.dtype(dtype).kind == "i" else [1], shape)
        return np.asarray(self._values.integers(1, 10, shape) * sign).astype(dtype)

    def _with(self, values: Array, special: Sequence[float], probability: float) -> Array:
        if not (self.edges and special and values.size and self.chance(probability)):
            return values
        flat = values.reshape(-1)
        for _ in range(self.integer(1, 3)):
            flat[self.integer(0, flat.size - 1)] = self.choice(special)
        return flat.reshape(values.shape)
