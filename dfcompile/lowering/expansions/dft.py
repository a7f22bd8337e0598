"""ONNX DFT and STFT, Fourier transforms of real or complex numbers; tables for spectra, which are constants."""

from collections.abc import Callable
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expressions import is_real, sum_dtype
from dfcompile.lowering.operators import Copy, MatMul, Pad

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


_LONGEST_STAGE = 64  # numbers that each result of a stage reads; a longer prime factor is a dense product

# Adds the transform of rows[outer, given * parts in] and returns rows[outer, bins * parts out].
_Rows: TypeAlias = Callable[[CanonicalFragment, Tensor, Transform], Tensor]


@onnx_expansion("DFT", "matmul", default=True)
def dft(op: Operator, build: CanonicalFragment) -> None:
    """``Y[…, k, …] = sum_n X[…, n, …] * exp(-2j pi n k / N)`` along an axis: a product with a constant matrix."""
    _add_transform(op, build, add_product)


@onnx_expansion("DFT", "fft", source="vanloan92")
def fast_dft(op: Operator, build: CanonicalFragment) -> None:
    """Stockham's fast transform: per prime factor of the length one copy and one downsampler of that many numbers."""
    transform, _ = _transform(op)
    _check_stages(op, transform.length)
    if transform.mirrors:
        raise op.unsupported("attributes 'inverse' and 'onesided' are 1 against one of them (use expansion matmul)")
    _add_transform(op, build, add_stages)


def _add_transform(op: Operator, build: CanonicalFragment, add_rows: _Rows) -> None:
    x, y = op.input(0), op.output()
    transform, axis = _transform(op)
    outer, extent, inner = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 : -1])
    given, parts = transform.given, transform.parts_in
    data = build.view(x, "data", (outer, extent, inner, parts))
    if inner > 1 or given < extent:
        data = build.copied("rows", data, ("i0", "i2", "i1", "i3"), (outer, inner, given, parts))
    found = add_rows(build, build.view(data, "signals", (outer * inner, given * parts)), transform)
    if inner == 1:
        build.view_as(found, y)
        return
    bins, parts, moved = transform.bins, transform.parts_out, Copy(read=("i0", "i2", "i1", "i3"))
    spectra = build.view(found, "spectra", (outer, inner, bins, parts))
    build.view_as(build.made("columns", moved, [spectra], (outer, bins, inner, parts)), y)


def _transform(op: Operator) -> tuple[Transform, int]:
    """Return the transform and its axis.

    Raises:
        UnsupportedOpError: the length or the axis is only known when the model runs, or operands contradict each other.
    """
    x, y = op.input(0), op.output()
    if x.rank < 2 or x.shape[-1] not in (1, 2) or not is_real(x.dtype):
        raise op.unsupported(f"data {x} against real numbers (1) or complex ones (2) along its last axis")
    if "axis" in op.attributes:  # before operator set 20
        given_axis = op.integer("axis", 1)
    else:
        (given_axis,) = op.static_integers(2, "axis") or (-2,)
    axis = op.front_axis(given_axis, x.rank)
    op.refuse_if(axis == x.rank - 1, f"axis {given_axis} against one before the last of {x}")
    is_inverse, is_onesided = op.integer("inverse", 0) != 0, op.integer("onesided", 0) != 0
    mirrors = is_inverse and is_onesided
    extent = x.shape[axis]
    (length,) = op.static_integers(1, "dft_length") or (2 * (extent - 1) if mirrors else extent,)
    op.refuse_if(length < 1, f"a transform of {length} numbers against at least 1")
    half = length // 2 + 1
    bins = half if is_onesided and not is_inverse else length
    given = min(extent, half if mirrors else length)
    transform = Transform(length, given, bins, is_inverse, x.shape[-1], 1 if mirrors else 2, mirrors)
    wanted = (*x.shape[:axis], bins, *x.shape[axis + 1 : -1], transform.parts_out)
    op.refuse_if(y.shape != wanted, f"result {y} against {list(wanted)}")
    return transform, axis


def _check_stages(op: Operator, length: int) -> None:
    radix = max((stage.radix for stage in stages(length)), default=1)
    if radix > _LONGEST_STAGE:
        raise op.unsupported(f"a length of {length} has the prime factor {radix} against at most {_LONGEST_STAGE}")


def add_product(build: CanonicalFragment, rows: Tensor, transform: Transform) -> Tensor:
    """Add the transform as one product with a constant matrix."""
    width = transform.bins * transform.parts_out
    build.check_parameter((rows.shape[1], width))
    matrix = transform.matrix().reshape(rows.shape[1], width)
    twiddles = build.parameter("twiddles", matrix.astype(sum_dtype(rows.dtype)))
    return build.made("spectrum", MatMul(), [rows, twiddles], (rows.shape[0], width), step="matmul")


def add_stages(build: CanonicalFragment, rows: Tensor, transform: Transform) -> Tensor:
    """Add the fast transform: rows padded to its length, stage by stage; then the wanted bins."""
    outer, length, parts, dtype = rows.shape[0], transform.length, transform.parts_in, sum_dtype(rows.dtype)
    if length == 1:  # no stage would make its number complex
        return add_product(build, rows, transform)
    data = build.view(rows, "numbers", (outer, transform.given, parts))
    if transform.given < length:
        pad = Pad((0, 0, 0, 0, length - transform.given, 0))
        data = build.made("padded", pad, [data], (outer, length, parts), step="pad")
    for number, stage in enumerate(stages(length)):
        shape = (outer, stage.radix, stage.blocks, stage.stride, parts)
        together = build.array(f"together{number}", (outer, stage.blocks, stage.stride, stage.radix, parts), data.dtype)
        read = ("i0", "i3", "i1", "i2", "i4")
        build.add(Copy(read=read), [build.view(data, f"given{number}", shape)], together, step=f"gather{number}")
        factors = stage.factors(1 if transform.is_inverse else -1)[..., :parts]
        if transform.is_inverse and number == 0:
            factors = factors / length
        # Dimensions: row, p, r, q, part of the result, h, part of what is read.
        factors = factors.reshape(stage.blocks, stage.radix, 1, 2, stage.radix, parts)
        twiddles = build.parameter(f"twiddles{number}", factors.astype(dtype))
        grid = build.view(together, f"grid{number}", (outer, stage.blocks, 1, stage.stride, 1, stage.radix, parts))
        data = build.array(f"stage{number}", (outer, stage.blocks, stage.radix, stage.stride, 2), dtype)
        build.reduce(Reduction.SUM, [grid, twiddles], data, [5, 6], "a * b", step=f"stage{number}")
        parts = 2
    if transform.bins == length and data.dtype == rows.dtype:
        return data
    complete, first = build.view(data, "complete", (outer, length, 2)), Copy(read=("i0", "i1", "i2"))
    return build.made("spectrum", first, [complete], (outer, transform.bins, 2), step="bins")


@onnx_expansion("STFT", "matmul", default=True)
def stft(op: Operator, build: CanonicalFragment) -> None:
    """The frames become rows in memory, times the window, which are multiplied with a constant matrix."""
    _add_frames(op, build, add_product)


@onnx_expansion("STFT", "fft", source="vanloan92")
def fast_stft(op: Operator, build: CanonicalFragment) -> None:
    """The frames become rows in memory, times the window; then Stockham's fast transform."""
    _check_stages(op, _frames(op)[1])
    _add_frames(op, build, add_stages)


def _add_frames(op: Operator, build: CanonicalFragment, add_rows: _Rows) -> None:
    x, window, y = op.input(0), op.optional_input(2), op.output()
    step, length = _frames(op)
    batch, parts = x.shape[0], x.shape[2] if x.rank > 2 else 1
    frames, bins = y.shape[1:3]
    signal = build.view(x, "signal", (batch, x.shape[1], parts))
    frame, shape = Copy(read=("i0", f"{step}*i1 + i2", "i3")), (batch, frames, length, parts)
    rows = build.made("rows", frame, [signal], shape, materialised=True, step="frames")
    if window is not None:
        axes = [(0, 1, 2, 3), (2,)]
        rows = build.computed("weighted", "a * b", [rows, window], rows.shape, axes=axes, step="window")
    transform = Transform(length, length, bins, parts_in=parts)
    found = add_rows(build, build.view(rows, "signals", (batch * frames, length * parts)), transform)
    build.view_as(found, y)


def _frames(op: Operator) -> tuple[int, int]:
    """Return the distance between frames and their length.

    Raises:
        UnsupportedOpError: they are only known when the model runs, or operands contradict each other.
    """
    x, window, y = op.input(0), op.optional_input(2), op.output()
    if x.rank not in (2, 3) or x.shape[2:] not in ((), (1,), (2,)) or not is_real(x.dtype):
        raise op.unsupported(f"signal {x} against rows of real numbers or complex ones")
    (step,) = op.static_integers(1, "frame_step") or (0,)
    (length,) = op.static_integers(3, "frame_length") or (x.shape[1] if window is None else window.elements,)
    if step < 1 or not 1 <= length <= x.shape[1]:
        raise op.unsupported(f"frames of {length} at a distance of {step} in {x.shape[1]} numbers")
    op.refuse_if(window is not None and window.shape != (length,), f"window {window} against frames of {length}")
    bins = length // 2 + 1 if op.integer("onesided", 1) else length
    wanted = (x.shape[0], (x.shape[1] - length) // step + 1, bins, 2)
    op.refuse_if(y.shape != wanted, f"result {y} against {list(wanted)}")
    return step, length


# Weights of the cosines of 0, 1, 2 … turns over the window; of the Hamming window 25/46, as ONNX has it.
_COSINES = {"BlackmanWindow": (0.42, -0.5, 0.08), "HammingWindow": (25 / 46, -21 / 46), "HannWindow": (0.5, -0.5)}


def window(op: Operator, build: CanonicalFragment) -> None:
    """``Y[n] = sum_j a[j] * cos(2 pi j n / N)``, N one less for a symmetric window: a constant, which is copied."""
    (size,) = op.static_integers(0, "size") or (0,)
    op.refuse_if(op.output().shape != (size,), f"size {size} against the result {op.output()}")
    build.check_parameter((size,))
    span = size if op.integer("periodic", 1) else size - 1
    op.refuse_if(span < 1, f"a symmetric window of {size} against at least 2 (it would be divided by 0)")
    turns = 2 * np.pi * np.arange(size) / span
    _add_table(op, build, sum((a * np.cos(j * turns) for j, a in enumerate(_COSINES[op.op_type])), np.zeros(size)))


EXPANSIONS = tuple(onnx_expansion(op_type, "table", default=True)(window) for op_type in _COSINES)


@onnx_expansion("MelWeightMatrix", "table", default=True)
def mel_weights(op: Operator, build: CanonicalFragment) -> None:
    """``Y[frequency, mel]``: triangles whose corners are equally far from each other in mel; a constant, copied."""
    names = ("num_mel_bins", "dft_length", "sample_rate")
    (bins,), (length,), (rate,) = (op.static_integers(at, name) or (0,) for at, name in enumerate(names))
    edges = [float(op.constant(at, name).item()) for at, name in ((3, "lower_edge_hertz"), (4, "upper_edge_hertz"))]
    if min(bins, length, rate) < 1 or not 0 <= edges[0] < edges[1] or op.output().shape != (length // 2 + 1, bins):
        raise op.unsupported(f"{bins} bins, {length} numbers, rate {rate}, from {edges[0]:g} to {edges[1]:g}")
    build.check_parameter(op.output().shape)
    low, high = (2595 * np.log10(1 + edge / 700) for edge in edges)
    mel = low + np.arange(bins + 2) * ((high - low) / (bins + 2))
    corners = ((length + 1) * (700 * (10 ** (mel / 2595) - 1)) // rate).astype(np.int64)
    if corners.max() > length // 2:
        raise op.unsupported(f"frequencies up to number {corners.max()} against {length // 2 + 1} of the spectrum")
    # a column per triangle: from 0 at one corner to 1 at the next to 0 at the one after
    at = np.arange(length // 2 + 1)[:, None]
    first, top, last = corners[:-2], corners[1:-1], corners[2:]
    rising = np.where(top > first, (at - first) / np.maximum(top - first, 1), 1.0)
    falling = (last - at) / np.maximum(last - top, 1)
    found = np.where((at >= first) & (at <= top), rising, 0.0)
    _add_table(op, build, np.where((at >= top) & (at < last), falling, found))


def _add_table(op: Operator, build: CanonicalFragment, values: npt.NDArray[np.float64]) -> None:
    y = op.output()
    build.add(Copy(), [build.parameter("table", values.astype(y.dtype))], y)
