"""Conv by tiles of the data: by Winograd's minimal filtering, or by Fourier transforms in real arithmetic.

Data and filters are transformed, products summed over channels, results transformed back. Each spatial dimension has a
short convolution; the dimensions are transformed one after another. Every step is a canonical convolution with a
constant matrix, except the sums over channels, which are matrix products.
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

# Polynomials are evaluated here and at infinity. Powers of the last two cost a digit: of 64 channels the largest
# error in single precision is 5e-6 of the largest result with all of them, 2e-7 with three and 7e-7 without any.
_POINTS = (0, 1, -1, 2, -2)
MOST_PRODUCTS = len(_POINTS) + 1
_CACHED, _LONGEST_CACHED_TILE = 64, 64  # short convolutions, and elements of a tile: up to 150 kB each


class ShortConvolution(Struct, frozen=True, eq=False):
    """``y = result @ ((filters @ w) * (data @ x))`` is ``y[n] = sum_a x[stride*n + dilation*a] * w[a]``.

    Attributes:
        data: matrix that transforms a tile of x, shape [products, tile].
        filters: matrix that transforms w, shape [products, taps].
        result: matrix that transforms products back to y, shape [outputs, products].
    """

    data: Matrix
    filters: Matrix
    result: Matrix

    def __post_init__(self) -> None:
        """Make the matrices read-only, as cached convolutions are shared."""
        for matrix in (self.data, self.filters, self.result):
            matrix.setflags(write=False)

    @property
    def tile(self) -> int:
        """Number of elements of x."""
        return int(self.data.shape[1])

    @property
    def taps(self) -> int:
        """Number of elements of w."""
        return int(self.filters.shape[1])

    @property
    def products(self) -> int:
        """Number of products of a transformed element of x and one of w."""
        return int(self.data.shape[0])

    @property
    def outputs(self) -> int:
        """Number of elements of y."""
        return int(self.result.shape[0])


def single_tap() -> ShortConvolution:
    """Return the convolution with one tap and one output: their product, without a transform."""
    one = np.ones((1, 1))
    return ShortConvolution(one, one, one)


@lru_cache(_CACHED)
def cook_toom(outputs: int, taps: int) -> ShortConvolution:
    """Return the convolution of Cook and Toom, as Winograd uses it: only as many products as elements of x.

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

    The spectrum of real numbers is symmetric, so about half of it is computed; a real element of it takes one product,
    a complex one three [mathieu14]. Results that would wrap around are left out.

    Args:
        tile: elements of x, at least those that the taps span.
        taps: elements of w.
        stride: distance between the elements of x that two results begin with.
        dilation: distance between the elements of x that two taps meet.
    """
    return (_cached_fourier if tile <= _LONGEST_CACHED_TILE else _fourier)(tile, taps, stride, dilation)


def _fourier(tile: int, taps: int, stride: int, dilation: int) -> ShortConvolution:
    outputs = (tile - dilation * (taps - 1) - 1) // stride + 1
    positions = (np.arange(tile), dilation * np.arange(taps), stride * np.arange(outputs))
    data, filters, result = [], [], []
    for frequency in range(tile // 2 + 1):
        x, w, y = (rotations(tile, frequency * position, 1) for position in positions)
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


_cached_fourier = lru_cache(_CACHED)(_fourier)


class TiledConvolution(Struct, frozen=True, eq=False):
    """A Conv in tiles: ``Y[b, g*rows, y…]`` of ``X[b, g*channels, x…]`` and ``W[g*rows, channels, k…]``.

    Attributes:
        windows: over the spatial dimensions of X.
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
        """Return a Conv operator in tiles of the given short convolutions."""
        x, w, group = op.input(0), op.input(1), op.integer("group", 1)
        return TiledConvolution(windows, tuple(short), x.shape[0], group, w.shape[0] // group, w.shape[1])

    @property
    def tiles(self) -> tuple[int, ...]:
        """Number of tiles, per spatial dimension."""
        return tuple(-(-count // short.outputs) for count, short in zip(self.windows.counts, self.short, strict=True))

    @property
    def steps(self) -> tuple[int, ...]:
        """Distance between the first elements of neighbouring tiles of X, per spatial dimension."""
        return tuple(step * short.outputs for step, short in zip(self.windows.strides, self.short, strict=True))

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements of X that the tiles span, per spatial dimension."""
        tiled = zip(self.tiles, self.steps, self.short, strict=True)
        return tuple((count - 1) * step + short.tile for count, step, short in tiled)

    @property
    def work(self) -> int:
        """Iterations of all tasks but copies and padding, to compare tilings."""
        filters, tiles, taps = self.group * self.rows, prod(self.tiles), [short.taps for short in self.short]
        of_data = self.batch * self._transformed(self.extents, [short.tile for short in self.short], self.tiles)
        of_filters = self.rows * self._transformed(taps, taps, [1] * len(taps))
        products = products_left = prod(short.products for short in self.short)
        sums = products * self.channels
        of_result, outputs = 0, 1
        for short in self.short:  # products become outputs, one dimension after another
            outputs *= short.outputs
            of_result += outputs * products_left
            products_left //= short.products
        return of_data + of_filters + self.batch * filters * tiles * (sums + of_result)

    def _transformed(self, extents: Sequence[int], widths: Sequence[int], tiles: Sequence[int]) -> int:
        """Return the iterations that transform all channels of a grid of these extents into tiles of these widths."""
        iterations, transformed = 0, self.group * self.channels
        for axis, (short, width, count) in enumerate(zip(self.short, widths, tiles, strict=True)):
            transformed *= short.products * count
            iterations += transformed * prod(extents[axis + 1 :]) * width
        return iterations

    def add(self, build: CanonicalFragment, x: Tensor, w: Tensor, bias: Tensor | None, y: Tensor) -> None:
        """Add the operators of the convolution to a fragment; a bias is added to the sums of each filter."""
        begins = self.windows.pads_begin
        spans = zip(self.extents, x.shape[2:], begins, strict=True)  # zeros until the last tile is full
        x = padded(build, x, begins, [max(wanted - extent - begin, 0) for wanted, extent, begin in spans])
        data = build.view(x, "channels", (x.shape[0], 1, *x.shape[1:]))
        weights = build.view(w, "weights", (1, 1, prod(w.shape[:2]), *w.shape[2:]))
        spectra = _transform(build, "data", data, [short.data for short in self.short], self.steps, self.tiles)
        once = (1,) * len(self.short)
        kernels = _transform(build, "filters", weights, [short.filters for short in self.short], once, once)
        self._finish(build, self._sums(build, spectra, kernels), bias, y)

    def _sums(self, build: CanonicalFragment, spectra: Tensor, kernels: Tensor) -> Tensor:
        """Return products of transformed data and filters, added over channels: ``[b, products…, filters, tiles…]``."""
        products, tiles = prod(short.products for short in self.short), prod(self.tiles)
        lead = (products, self.group) if self.group > 1 else (products,)
        batch = (self.batch,) if self.batch > 1 else ()
        left = build.view(kernels, "kernels", (*lead, self.rows, self.channels))
        right = build.view(spectra, "spectra", (*batch, *lead, self.channels, tiles))
        shape, dtype = (*batch, *lead, self.rows, tiles), spectra.dtype
        if self.channels == 1:
            return build.computed("sums", "a * b", [left, right], shape, dtype, step="products")
        return build.made("sums", MatMul(), [left, right], shape, dtype, step="matmul")

    def _finish(self, build: CanonicalFragment, sums: Tensor, bias: Tensor | None, y: Tensor) -> None:
        """Transform the sums back, lay tiles side by side, crop the image, and add the bias."""
        done, left = self.batch, sums.elements // self.batch  # elements of the dimensions before and after this one
        for axis, short in enumerate(self.short):
            left //= short.products
            products = build.view(sums, f"products{axis}", (done, short.products, left))
            matrix = build.parameter(f"result_matrix{axis}", short.result[..., None].astype(sums.dtype))
            shape = (done, short.outputs, left)
            sums = build.made(f"result{axis}", Convolution((1,), (1,)), [products, matrix], shape, sums.dtype)
            done *= short.outputs
        outputs, filters = [short.outputs for short in self.short], self.group * self.rows
        grid = build.view(sums, "grid", (self.batch, *outputs, filters, *self.tiles))
        extents = tuple(tiles * output for tiles, output in zip(self.tiles, outputs, strict=True))
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
        pairs = list(zip(self.tiles, (short.outputs for short in self.short), strict=True))
        loops = (self.batch, filters, *(extent for pair in pairs for extent in pair))
        tile, output = ([f"i{2 + 2 * axis + at}" for axis in range(len(pairs))] for at in (0, 1))
        places = (f"{extent}*{outer} + {inner}" for (_, extent), outer, inner in zip(pairs, tile, output, strict=True))
        return Copy(loops, ("i0", *output, "i1", *tile), ("i0", "i1", *places))


def _transform(
    build: CanonicalFragment,
    name: str,
    tensor: Tensor,
    matrices: Sequence[Matrix],
    steps: Sequence[int],
    tiles: Sequence[int],
) -> Tensor:
    """Return ``[b*products…, 1, c, tiles…]`` of ``[b, 1, c, x…]``, transformed along one dimension after another."""
    rank, dtype = len(matrices), sum_dtype(tensor.dtype)
    for axis, (matrix, step, count) in enumerate(zip(matrices, steps, tiles, strict=True)):
        products, width = matrix.shape
        dimension = 3 + axis
        if matrix.size == 1 and tensor.shape[dimension] == count:
            continue  # one tap, which needs no transform
        along, strides = [1] * (rank + 1), [1] * (rank + 1)
        along[1 + axis], strides[1 + axis] = width, step
        constants = build.parameter(f"{name}_matrix{axis}", matrix.reshape(products, 1, *along).astype(dtype))
        spatial = (*tensor.shape[2:dimension], count, *tensor.shape[dimension + 1 :])
        convolution, shape = Convolution(tuple(strides), (1,) * (rank + 1)), (tensor.shape[0], products, *spatial)
        transformed = build.made(f"{name}{axis}", convolution, [tensor, constants], shape, dtype)
        tensor = build.view(transformed, f"{name}{axis}_tiles", (tensor.shape[0] * products, 1, *spatial))
    return tensor


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


_TILES = 4  # powers of two to try, from the window on: matrices of longer tiles cost more than they save


@onnx_expansion("Conv", "fft", source="mathieu14")
def fft(op: Operator, build: CanonicalFragment) -> None:
    """Spectra of tiles of the data times spectra of the filters, in tiles of least work; windows of any size."""
    windows = windows_of(op, op.input(1).shape[2:])
    choices = product(*(tuple(_fourier_tiles(windows, axis)) for axis in range(len(windows.kernel))))
    candidates = (TiledConvolution.of(op, windows, short) for short in choices)
    best = min(candidates, key=lambda tiled: tiled.work)
    for short in best.short:
        build.check_parameter(short.data.shape)
    best.add(build, op.input(0), op.input(1), op.optional_input(2), op.output())


def _fourier_tiles(windows: Windows, axis: int) -> Iterator[ShortConvolution]:
    """Yield short convolutions along a dimension: tiles of powers of two, up to one that holds the whole dimension."""
    taps, stride, dilation = windows.kernel[axis], windows.strides[axis], windows.dilations[axis]
    if taps == 1:
        yield single_tap()
        return
    window = dilation * (taps - 1) + 1
    tile, needed = 1 << (window - 1).bit_length(), stride * (windows.counts[axis] - 1) + window
    for _ in range(_TILES):
        yield fourier(tile, taps, stride, dilation)
        if tile >= needed:
            return
        tile *= 2
