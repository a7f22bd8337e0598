"""Short convolutions with few products: three constant matrices, by Cook and Toom or by Fourier transforms."""

from fractions import Fraction
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from numpy.polynomial.polynomial import polyfromroots

from dfcompile.lowering.fourier import Matrix, rotations

Exact = npt.NDArray[np.object_]  # of fractions

# Where polynomials are evaluated, besides at infinity. Powers of the last two cost a digit: of 64 channels the largest
# error in single precision is 5e-6 of the largest result with all of them, 2e-7 with three and 7e-7 without any.
_POINTS = (0, 1, -1, 2, -2)
MOST_PRODUCTS = len(_POINTS) + 1
_KEPT, _KEPT_TILE = 64, 64  # convolutions whose matrices are kept, and how large: up to 150 kB each


class ShortConvolution(Struct, frozen=True, eq=False):
    """``y = result @ ((filters @ w) * (data @ x))`` is ``y[n] = sum_a x[stride*n + dilation*a] * w[a]``.

    Attributes:
        data: of a tile of x: products by elements.
        filters: of w: products by taps.
        result: of y: elements by products.
    """

    data: Matrix
    filters: Matrix
    result: Matrix

    def __post_init__(self) -> None:
        """Freeze the matrices: convolutions are shared."""
        for matrix in (self.data, self.filters, self.result):
            matrix.setflags(write=False)

    @property
    def tile(self) -> int:
        """Elements of x."""
        return int(self.data.shape[1])

    @property
    def taps(self) -> int:
        """Elements of w."""
        return int(self.filters.shape[1])

    @property
    def products(self) -> int:
        """Products of an element that depends on x with one that depends on w."""
        return int(self.data.shape[0])

    @property
    def outputs(self) -> int:
        """Elements of y."""
        return int(self.result.shape[0])


def single_tap() -> ShortConvolution:
    """Return the convolution with one tap, an element at a time."""
    one = np.ones((1, 1))
    return ShortConvolution(one, one, one)


@lru_cache(_KEPT)
def cook_toom(outputs: int, taps: int) -> ShortConvolution:
    """Return the convolution of Cook and Toom, as Winograd uses it: as many products as elements of x.

    Args:
        outputs: elements of y.
        taps: elements of w; together they are at most `MOST_PRODUCTS` + 1.

    >>> cook_toom(2, 3).data.astype(int).tolist()
    [[-1, 0, 1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, -1, 0, 1]]
    """
    return ShortConvolution(*(exact.astype(np.float64) for exact in exact_cook_toom(outputs, taps)))


def exact_cook_toom(outputs: int, taps: int) -> tuple[Exact, Exact, Exact]:
    """Return the matrices of `cook_toom` for data, filters and result as fractions.

    The product of polynomials of degrees ``outputs - 1`` and ``taps - 1`` follows from its values at as many points as
    it has coefficients, one of them infinity, by Lagrange's polynomials; read backwards (transposed), the same numbers
    are a convolution [lavin16]. The denominators stand with the filters.
    """
    points = np.array([Fraction(point) for point in _POINTS[: outputs + taps - 2]], dtype=object)
    others = [np.delete(points, at) for at in range(len(points))]
    data = [[*map(Fraction, polyfromroots(rest)), Fraction()] for rest in others]
    data.append([*map(Fraction, polyfromroots(points))])
    # The powers at each point; at infinity the highest one.
    filters, values = (
        np.vstack([np.vander(points, count, increasing=True), np.eye(count, dtype=object)[-1:]])
        for count in (taps, outputs)
    )
    denominators = [prod(point - rest, start=Fraction(1)) for point, rest in zip(points, others, strict=True)]
    filters[:-1] /= np.array(denominators, dtype=object)[:, None]
    return np.array(data, dtype=object), filters, values.T


def fourier(tile: int, taps: int, stride: int = 1, dilation: int = 1) -> ShortConvolution:
    """Return the convolution by discrete Fourier transforms of a tile, in real arithmetic.

    The spectrum of real numbers repeats itself, so about half of it is made; what is real of it takes one product, a
    complex number three [mathieu14]. Results that would wrap around are left out.

    Args:
        tile: elements of x, at least those that the taps span.
        taps: elements of w.
        stride: distance between the elements of x that two results begin with.
        dilation: distance between the elements of x that two taps meet.
    """
    return (_kept_fourier if tile <= _KEPT_TILE else _fourier)(tile, taps, stride, dilation)


def _fourier(tile: int, taps: int, stride: int, dilation: int) -> ShortConvolution:
    outputs = (tile - dilation * (taps - 1) - 1) // stride + 1
    places = (np.arange(tile), dilation * np.arange(taps), stride * np.arange(outputs))
    data, filters, result = [], [], []
    for frequency in range(tile // 2 + 1):
        x, w, y = (rotations(tile, frequency * place, 1) for place in places)
        y = y / tile
        if 2 * frequency in (0, tile):
            data.append(x.real)
            filters.append(w.real)
            result.append(y.real)
            continue
        # (real + i imaginary) of x times (a + i b) of w, which is conjugated: k1 - k3 + i (k1 + k2).
        real, imaginary, a, b = x.real, -x.imag, w.real, w.imag
        data += [real + imaginary, real, imaginary]
        filters += [a, b - a, a + b]
        result += [2 * (y.real - y.imag), -2 * y.imag, -2 * y.real]
    return ShortConvolution(np.array(data), np.array(filters), np.array(result).T)


_kept_fourier = lru_cache(_KEPT)(_fourier)
