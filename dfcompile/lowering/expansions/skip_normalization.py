"""Normalisations of onnxruntime: of a sum with what skips a layer, and of embeddings."""

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expansions.normalization import add_scaled, inverse_root_mean_square, statistics
from dfcompile.lowering.operators import Lookup

_EPSILON = 1e-12  # where a node gives none


@onnx_expansion("com.microsoft.SkipLayerNormalization", "two-pass", source="onnxruntime", default=True)
def skip_layer_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y = (S - mean) / sqrt(var + epsilon) * gamma + beta`` over the last axis, with ``S = X + skip + bias``."""
    total = _sum(op, build, op.optional_input(4))
    _normalise(op, build, total, op.input(2), op.optional_input(3))


@onnx_expansion("com.microsoft.SkipSimplifiedLayerNormalization", "map", source="onnxruntime", default=True)
def skip_simplified_layer_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y = S / sqrt(mean(S * S) + epsilon) * gamma`` over the last axis, with ``S = X + skip + bias``."""
    total = _sum(op, build, op.optional_input(3))
    inverse = inverse_root_mean_square(build, total, [total.rank - 1], op.real("epsilon", _EPSILON))
    build.elementwise("a * b * c", [total, inverse, op.input(2)], op.output(), step="scale")


@onnx_expansion("com.microsoft.EmbedLayerNormalization", "two-pass", source="onnxruntime", default=True)
def embed_layer_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y = normalised(words[ids] + positions[p] + segments[t]) * gamma + beta`` over the last axis."""
    tokens, words, positions = op.input(0), op.input(2), op.input(3)
    if op.optional_output(1) is not None:
        raise op.unsupported("the result 'mask_index' has no expansion")
    y, places = op.output(), op.optional_input(8)
    looked_up = [_rows(build, words, tokens, "words")]
    if places is not None:
        looked_up.append(_rows(build, positions, places, "positions"))
    elif positions.shape[0] == y.shape[1]:
        looked_up.append(positions)
    else:
        looked_up.append(build.copied("positions", positions, ("i0", "i1"), (y.shape[1], positions.shape[1])))
    segments, table = op.optional_input(1), op.optional_input(4)
    if segments is not None and table is not None:
        looked_up.append(_rows(build, table, segments, "segments"))
    total = op.optional_output(2) or build.array("sum", y.shape, y.dtype)
    build.elementwise(" + ".join("abc"[: len(looked_up)]), looked_up, total, step="add")
    _normalise(op, build, total, op.input(5), op.input(6))


def _rows(build: CanonicalFragment, table: Tensor, indices: Tensor, name: str) -> Tensor:
    return build.made(name, Lookup(0), [table, indices], (*indices.shape, table.shape[1]), table.dtype)


def _sum(op: Operator, build: CanonicalFragment, bias: Tensor | None) -> Tensor:
    """Return the sum of the operands, which is a result as well if the model uses it."""
    for position, name in ((1, "mean"), (2, "inv_std_var")):
        if op.optional_output(position) is not None:
            raise op.unsupported(f"the result {name!r} has no expansion (it is of training)")
    x, skip = op.input(0), op.input(1)
    total = op.optional_output(3) or build.array("sum", x.shape, x.dtype)
    operands = [x, skip] if bias is None else [x, skip, bias]
    build.elementwise(" + ".join("abc"[: len(operands)]), operands, total, step="add")
    return total


def _normalise(op: Operator, build: CanonicalFragment, x: Tensor, gamma: Tensor, beta: Tensor | None) -> None:
    of_x = statistics(build, x, [x.rank - 1], op.real("epsilon", _EPSILON))
    add_scaled(build, x, of_x, gamma, beta, op.output())
