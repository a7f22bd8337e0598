"""ONNX's tables for spectra: HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix; all are constants."""

import numpy as np
import numpy.typing as npt

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion
from dfcompile.lowering.operators import Copy

# Weights of the cosines of 0, 1, 2 … turns over the window; of the Hamming window 25/46, as ONNX has it.
_COSINES = {
    "BlackmanWindow": (0.42, -0.5, 0.08),
    "HammingWindow": (25 / 46, -21 / 46),
    "HannWindow": (0.5, -0.5),
}


def window(op: Operator, build: CanonicalFragment) -> None:
    """``Y[n] = sum_j a[j] * cos(2 pi j n / N)``, N one less for a symmetric window: a constant, which is copied."""
    (size,) = op.static_integers(0, "size") or (0,)
    if op.output().shape != (size,):
        raise op.unsupported(f"size {size} against the result {op.output()}")
    build.check_parameter((size,))
    span = size if op.integer("periodic", 1) else size - 1
    if span < 1:
        raise op.unsupported(f"a symmetric window of {size} against at least 2 (it would be divided by 0)")
    turns = 2 * np.pi * np.arange(size) / span
    _add_table(op, build, sum((a * np.cos(j * turns) for j, a in enumerate(_COSINES[op.op_type])), np.zeros(size)))


EXPANSIONS = tuple(onnx_expansion(op_type, "table", default=True)(window) for op_type in _COSINES)


@onnx_expansion("MelWeightMatrix", "table", default=True)
def mel_weights(op: Operator, build: CanonicalFragment) -> None:
    """``Y[frequency, mel]``: triangles whose corners are equally far from each other in mel; a constant, copied."""
    (bins,), (length,), (rate,) = (
        op.static_integers(at, name) or (0,) for at, name in enumerate(("num_mel_bins", "dft_length", "sample_rate"))
    )
    edges = [float(op.constant(at, name).item()) for at, name in ((3, "lower_edge_hertz"), (4, "upper_edge_hertz"))]
    if min(bins, length, rate) < 1 or not 0 <= edges[0] < edges[1] or op.output().shape != (length // 2 + 1, bins):
        raise op.unsupported(f"{bins} bins, {length} numbers, rate {rate}, from {edges[0]:g} to {edges[1]:g}")
    build.check_parameter(op.output().shape)
    low, high = (2595 * np.log10(1 + edge / 700) for edge in edges)
    mel = low + np.arange(bins + 2) * ((high - low) / (bins + 2))
    corners = ((length + 1) * (700 * (10 ** (mel / 2595) - 1)) // rate).astype(np.int64)
    if corners.max() > length // 2:
        raise op.unsupported(f"frequencies up to number {corners.max()} against {length // 2 + 1} of the spectrum")
    _add_table(op, build, _triangles(corners, length // 2 + 1))


def _triangles(corners: npt.NDArray[np.int64], extent: int) -> npt.NDArray[np.float64]:
    """Return a column per triangle: from 0 at one corner to 1 at the next to 0 at the one after."""
    at = np.arange(extent)[:, None]
    first, top, last = corners[:-2], corners[1:-1], corners[2:]
    rising = np.where(top > first, (at - first) / np.maximum(top - first, 1), 1.0)
    falling = (last - at) / np.maximum(last - top, 1)
    found = np.where((at >= first) & (at <= top), rising, 0.0)
    return np.where((at >= top) & (at < last), falling, found)


def _add_table(op: Operator, build: CanonicalFragment, values: npt.NDArray[np.float64]) -> None:
    y = op.output()
    build.add(Copy(), [build.parameter("table", values.astype(y.dtype))], y)
