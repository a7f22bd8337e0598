"""Conv by tiles of the data: by Winograd's minimal filtering, or by Fourier transforms in real arithmetic.

Data and filters are transformed, products summed over channels, results transformed back. Along every spatial
dimension there is a short convolution; the dimensions are transformed one after another. All of it are canonical
convolutions with constant matrices, but the sums over channels, which are matrix products.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import prod

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from numpy.polynomial.polynomial import polyfromroots

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expansions.dft import Matrix, rotations
from dfcompile.lowering.expressions import sum_dtype
from dfcompile.lowering.operators import Convolution, Copy, MatMul
from dfcompile.lowering.windows import Windows, padded, windows_of

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


class TiledConvolution(Struct, frozen=True, eq=False):
    """``Y[b, g*rows, y…]`` of ``X[b, g*channels, x…]`` and ``W[g*rows, channels, k…]`` in tiles.

    Attributes:
        windows: of X.
        short: the short convolution along each spatial dimension.
        batch: extent of b.
        group: number of groups of channels.
        rows: filters of a group.
        channels: of a group.
    """

    windows: Windows
    short: tuple[ShortConvolution, ...]
    batch: int
    group: int
    rows: int
    channels: int

    @staticmethod
    def of(op: Operator, windows: Windows, short: Sequence[ShortConvolution]) -> "TiledConvolution":
        """Return the convolution of a Conv operator by short convolutions."""
        x, w, group = op.input(0), op.input(1), op.integer("group", 1)
        return TiledConvolution(windows, tuple(short), x.shape[0], group, w.shape[0] // group, w.shape[1])

    @property
    def tiles(self) -> tuple[int, ...]:
        """Number of tiles, per spatial dimension."""
        return tuple(-(-count // each.outputs) for count, each in zip(self.windows.counts, self.short, strict=True))

    @property
    def steps(self) -> tuple[int, ...]:
        """Distance between the first elements of neighbouring tiles of X, per spatial dimension."""
        return tuple(step * each.outputs for step, each in zip(self.windows.strides, self.short, strict=True))

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements of X that the tiles span, per spatial dimension."""
        tiled = zip(self.tiles, self.steps, self.short, strict=True)
        return tuple((count - 1) * step + each.tile for count, step, each in tiled)

    @property
    def work(self) -> int:
        """Iterations of everything but copies and padding."""
        filters, tiles, taps = self.group * self.rows, prod(self.tiles), [each.taps for each in self.short]
        of_data = self.batch * self._transformed(self.extents, [each.tile for each in self.short], self.tiles)
        of_filters = self.rows * self._transformed(taps, taps, [1] * len(taps))
        products = left = prod(each.products for each in self.short)
        sums = products * self.channels
        of_result, made = 0, 1
        for each in self.short:
            made *= each.outputs
            of_result += made * left
            left //= each.products
        return of_data + of_filters + self.batch * filters * tiles * (sums + of_result)

    def _transformed(self, given: Sequence[int], widths: Sequence[int], tiles: Sequence[int]) -> int:
        """Return the iterations that transform all channels of a grid of elements into tiles."""
        found, before = 0, self.group * self.channels
        for axis, (each, width, count) in enumerate(zip(self.short, widths, tiles, strict=True)):
            before *= each.products * count
            found += before * prod(given[axis + 1 :]) * width
        return found

    def add(self, build: CanonicalFragment, x: Tensor, w: Tensor, bias: Tensor | None, y: Tensor) -> None:
        """Add it to a fragment; a bias is added to the sums of each filter."""
        begins = self.windows.pads_begin
        spans = zip(self.extents, x.shape[2:], begins, strict=True)  # zeros, so many that the last tile lies within
        x = padded(build, x, begins, [max(wanted - extent - begin, 0) for wanted, extent, begin in spans])
        data = build.view(x, "channels", (x.shape[0], 1, *x.shape[1:]))
        weights = build.view(w, "weights", (1, 1, prod(w.shape[:2]), *w.shape[2:]))
        spectra = _transform(build, "data", data, [each.data for each in self.short], self.steps, self.tiles)
        once = (1,) * len(self.short)
        kernels = _transform(build, "filters", weights, [each.filters for each in self.short], once, once)
        self._finish(build, self._sums(build, spectra, kernels), bias, y)

    def _sums(self, build: CanonicalFragment, spectra: Tensor, kernels: Tensor) -> Tensor:
        """Return ``[b, products…, filters, tiles…]``: what is transformed, multiplied and summed over channels."""
        products, tiles = prod(each.products for each in self.short), prod(self.tiles)
        lead = (products, self.group) if self.group > 1 else (products,)
        batch = (self.batch,) if self.batch > 1 else ()
        left = build.view(kernels, "kernels", (*lead, self.rows, self.channels))
        right = build.view(spectra, "spectra", (*batch, *lead, self.channels, tiles))
        shape, dtype = (*batch, *lead, self.rows, tiles), spectra.dtype
        if self.channels == 1:
            return build.computed("sums", "a * b", [left, right], shape, dtype, step="products")
        return build.made("sums", MatMul(), [left, right], shape, dtype, step="matmul")

    def _finish(self, build: CanonicalFragment, sums: Tensor, bias: Tensor | None, y: Tensor) -> None:
        """Transform the sums back, lay tiles side by side, cut off what is too much, and add the bias."""
        made, left = self.batch, sums.elements // self.batch
        for axis, each in enumerate(self.short):
            left //= each.products
            given = build.view(sums, f"products{axis}", (made, each.products, left))
            matrix = build.parameter(f"result_matrix{axis}", each.result[..., None].astype(sums.dtype))
            shape = (made, each.outputs, left)
            sums = build.made(f"result{axis}", Convolution((1,), (1,)), [given, matrix], shape, sums.dtype)
            made *= each.outputs
        outputs, filters = [each.outputs for each in self.short], self.group * self.rows
        grid = build.view(sums, "grid", (self.batch, *outputs, filters, *self.tiles))
        extents = tuple(tiles * each for tiles, each in zip(self.tiles, outputs, strict=True))
        is_done = bias is None and extents == y.shape[2:]
        image = y if is_done else build.array("image", (self.batch, filters, *extents), sums.dtype)
        build.add(self._side_by_side(filters), [grid], image, step="image")
        if bias is not None:
            axes, starts = [list(range(y.rank)), [1]], [[0] * y.rank, [0]]
            build.elementwise("a + b", [image, bias], y, axes=axes, starts=starts, step="bias")
        elif not is_done:
            build.add(Copy(read=tuple(f"i{axis}" for axis in range(y.rank))), [image], y, step="crop")

    def _side_by_side(self, filters: int) -> Copy:
        """Return ``image[b, filter, outputs*tile + output …] = grid[b, output…, filter, tile…]`` in row order."""
        # Loops: i0 = batch, i1 = filter, then a tile and an element of it per spatial dimension.
        pairs = list(zip(self.tiles, (each.outputs for each in self.short), strict=True))
        loops = (self.batch, filters, *(extent for pair in pairs for extent in pair))
        tile, output = ([f"i{2 + 2 * axis + at}" for axis in range(len(pairs))] for at in (0, 1))
        places = (f"{extent}*{outer} + {inner}" for (_, extent), outer, inner in zip(pairs, tile, output, strict=True))
        return Copy(loops, ("i0", *output, "i1", *tile), ("i0", "i1", *places))


def _transform(
    build: CanonicalFragment,
    name: str,
    given: Tensor,
    matrices: Sequence[Matrix],
    steps: Sequence[int],
    tiles: Sequence[int],
) -> Tensor:
    """Return ``[b*products…, 1, c, tiles…]`` of ``[b, 1, c, x…]``, transformed along one dimension after another."""
    rank, dtype = len(matrices), sum_dtype(given.dtype)
    for axis, (matrix, step, count) in enumerate(zip(matrices, steps, tiles, strict=True)):
        products, width = matrix.shape
        at = 3 + axis
        if matrix.size == 1 and given.shape[at] == count:
            continue  # a single tap
        along, strides = [1] * (rank + 1), [1] * (rank + 1)
        along[1 + axis], strides[1 + axis] = width, step
        constants = build.parameter(f"{name}_matrix{axis}", matrix.reshape(products, 1, *along).astype(dtype))
        spatial = (*given.shape[2:at], count, *given.shape[at + 1 :])
        convolution, shape = Convolution(tuple(strides), (1,) * (rank + 1)), (given.shape[0], products, *spatial)
        made = build.made(f"{name}{axis}", convolution, [given, constants], shape, dtype)
        given = build.view(made, f"{name}{axis}_tiles", (given.shape[0] * products, 1, *spatial))
    return given


@onnx_expansion("Conv", "winograd", source="lavin16")
def winograd(op: Operator, build: CanonicalFragment) -> None:
    """F(2x2, 3x3) and its like: two results per tile and dimension, of up to 5 taps; stride and dilation 1."""
    _add(op, build, outputs=2)


@onnx_expansion("Conv", "winograd4", source="lavin16")
def winograd4(op: Operator, build: CanonicalFragment) -> None:
    """F(4x4, 3x3) and its like: four results per tile and dimension, of up to 3 taps; stride and dilation 1."""
    _add(op, build, outputs=4)


def _add(op: Operator, build: CanonicalFragment, outputs: int) -> None:
    x, w = op.input(0), op.input(1)
    windows = windows_of(op, w.shape[2:])
    most = MOST_PRODUCTS + 1 - outputs
    if max(windows.kernel, default=1) == 1:
        raise op.unsupported("a window of one element against one of several")
    for taps, stride, dilation in zip(windows.kernel, windows.strides, windows.dilations, strict=True):
        op.refuse_if(taps > most, f"a window of {taps} elements along an axis against at most {most}")
        if taps > 1 and (stride, dilation) != (1, 1):
            raise op.unsupported(f"stride {stride} and dilation {dilation} against 1 and 1")
    short = [single_tap() if taps == 1 else cook_toom(outputs, taps) for taps in windows.kernel]
    TiledConvolution.of(op, windows, short).add(build, x, w, op.optional_input(2), op.output())


_LONGEST = 4  # tiles, in powers of two that a window fits: matrices of longer ones take more than products save


@onnx_expansion("Conv", "fft", source="mathieu14")
def fft(op: Operator, build: CanonicalFragment) -> None:
    """Spectra of tiles of the data times spectra of the filters, in tiles of least work; windows of any size."""
    windows = windows_of(op, op.input(1).shape[2:])
    choices = product(*(tuple(_along(windows, axis)) for axis in range(len(windows.kernel))))
    candidates = (TiledConvolution.of(op, windows, short) for short in choices)
    best = min(candidates, key=lambda each: each.work)
    for each in best.short:
        build.check_parameter(each.data.shape)
    best.add(build, op.input(0), op.input(1), op.optional_input(2), op.output())


def _along(windows: Windows, axis: int) -> Iterator[ShortConvolution]:
    """Yield short convolutions along a dimension: tiles of powers of two, as few as that one takes all."""
    taps, stride, dilation = windows.kernel[axis], windows.strides[axis], windows.dilations[axis]
    if taps == 1:
        yield single_tap()
        return
    window = dilation * (taps - 1) + 1
    tile, needed = 1 << (window - 1).bit_length(), stride * (windows.counts[axis] - 1) + window
    for _ in range(_LONGEST):
        yield fourier(tile, taps, stride, dilation)
        if tile >= needed:
            return
        tile *= 2
