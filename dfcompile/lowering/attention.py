"""Attention ``softmax(scale * Q @ K' + bias) @ V`` of several heads: what ONNX's and contributed attentions share."""

from collections.abc import Callable, Sequence
from math import inf
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor
from dfcompile.lowering.expressions import literal, operand_names, substitute, sum_dtype
from dfcompile.lowering.operators import Concat, Copy, MatMul, Pad

LEAST_BLOCK = 64  # keys, of an attention that takes them block by block
MOST_BLOCKS = 16
_ROWS = (0, 2, 1, 3)  # [b, s, n, h] as [b, n, s, h], and back


Attend: TypeAlias = "Callable[[CanonicalFragment, Heads, Tensor], None]"  # `attend`, or `attend_by_blocks`


class Term(Struct, frozen=True):
    """A step from a product of query and key to what the softmax is of.

    Attributes:
        expression: of the value so far, ``a``, and the operands ``b``, ``c`` ….
        operands: broadcast to ``[b, n, s, l]``; the last dimension is that of the keys, or 1.
        may_mask: whether it may keep a query from all keys.
    """

    expression: str
    operands: tuple[Tensor, ...] = ()
    may_mask: bool = False


class Heads(Struct, frozen=True):
    """What attends to what; ``n`` heads of queries share ``g`` heads of keys and values, n a multiple of g.

    Attributes:
        queries: ``[b, n, s, h]``, scaled.
        keys: ``[b, g, l, h]``.
        values: ``[b, g, l, w]``.
        terms: in order, from the product of query and key to what the softmax is of.
        dtype: numpy name of the element type in which the softmax is computed.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    terms: tuple[Term, ...]
    dtype: str

    @property
    def scores_shape(self) -> tuple[int, int, int, int]:
        """Shape of the scores, ``[b, n, s, l]``."""
        batch, heads, length, _ = self.queries.shape
        return batch, heads, length, self.keys.shape[2]

    @property
    def is_guarded(self) -> bool:
        """Whether a term may keep a query from all keys."""
        return any(term.may_mask for term in self.terms)

    @property
    def exponential(self) -> str:
        """Of a score ``a`` less the largest one ``b``, which is negative infinity where no key is attended to."""
        return "exp(a - b) if b != -inf else 0" if self.is_guarded else "exp(a - b)"

    @property
    def share(self) -> str:
        """Of exponentials, or a sum weighted by them, ``a`` in their total ``b``."""
        return "a / b if b != 0 else 0" if self.is_guarded else "a / b"


def separate_heads(
    build: CanonicalFragment, x: Tensor, heads: int, name: str, *, bias: Tensor | None = None, factor: float = 1.0
) -> Tensor:
    """Return ``(X + bias) * factor`` as ``[b, n, s, h]``; a view where nothing has to move.

    Args:
        build: what is built.
        x: ``[b, s, n * h]``, or ``[b, n, s, h]``.
        heads: n.
        name: of the result.
        bias: ``[n * h]``, only with X of three dimensions.
        factor: as large as 1 to leave elements as they are.
    """
    is_flat = x.rank == 3
    shape = (x.shape[0], heads, x.shape[1], x.shape[2] // heads) if is_flat else x.shape
    batch, heads, length, width = shape
    is_moved = is_flat and heads > 1 and length > 1
    is_same = bias is None and factor == 1.0
    if is_same and not is_moved:
        return build.shaped(x, name, shape)
    apart = build.view(x, f"{name}_columns", (batch, length, heads, width)) if is_flat else x
    if is_same:
        return build.copied(name, apart, ("i0", "i2", "i1", "i3"), shape)
    source, operands = "a", [apart]
    axes: list[tuple[int, ...]] = [_ROWS if is_flat else (0, 1, 2, 3)]
    if bias is not None:
        source, operands = "(a + b)", [apart, build.view(bias, f"{name}_bias", (heads, width))]
        axes.append((1, 3))
    if factor != 1.0:
        source = f"{source} * {literal(factor, 'float32')}"
    return build.computed(name, source, operands, shape, x.dtype, axes=axes)


def join_heads(build: CanonicalFragment, x: Tensor, y: Tensor) -> None:
    """Write ``X[b, n, s, h]`` to ``Y``, which is ``[b, s, n * h]`` or of the same shape."""
    batch, heads, length, width = x.shape
    if y.rank == 4 or heads == 1 or length == 1:
        build.view_as(x, y)
        return
    shape = (batch, length, heads, width)
    build.view_as(build.made("joined", Copy(read=("i0", "i2", "i1", "i3")), [x], shape, y.dtype, step="join"), y)


def appended(build: CanonicalFragment, before: Tensor | None, x: Tensor, result: Tensor | None, name: str) -> Tensor:
    """Return ``before`` and ``x`` one behind the other along the keys; also written to a result that is used."""
    if before is None or not before.elements:
        if result is not None:
            build.add(Copy(), [x], result, step=name)
        return x
    batch, heads, length, width = x.shape
    together = result or build.array(name, (batch, heads, before.shape[2] + length, width), x.dtype)
    build.add(Concat(2), [before, x], together, step=name)
    return together


def with_past(op: Operator, build: CanonicalFragment, x: Tensor, name: str, at: tuple[int, int]) -> Tensor:
    """Return keys (or values) behind those of an operand, of the one or the other position; also a result if used."""
    number = ("keys", "values").index(name)
    past, result = op.optional_input(at[number]), op.optional_output(1 + number)
    return appended(build, past, x, result, f"present_{name}")


def softcap_terms(op: Operator) -> list[Term]:
    """Return the term that keeps scores below the attribute ``softcap``; none without it."""
    cap = literal(op.real("softcap", 0.0), "float32")
    return [Term(f"tanh(a / {cap}) * {cap}")] if op.real("softcap", 0.0) else []


def causal_terms(
    build: CanonicalFragment, heads: tuple[int, int], before: int, window: tuple[int, int] = (-1, 0)
) -> list[Term]:
    """Return the term that keeps queries from keys outside of a window around their own place; none if it keeps none.

    Args:
        build: what is built.
        heads: numbers of queries and of keys.
        before: keys before the first query's own.
        window: keys before and behind a query's own that it attends to; -1: all of them.
    """
    if max(window) < 0:
        return []
    queries, keys = heads
    build.check_parameter(heads)
    places = np.arange(queries)[:, None] + before - np.arange(keys)[None, :]
    allowed = np.ones(heads, bool)
    if window[0] >= 0:
        allowed &= places <= window[0]
    if window[1] >= 0:
        allowed &= places >= -window[1]
    if allowed.all():
        return []
    mask = build.parameter("window", allowed)
    return [Term("a if b else a - inf", (mask,), may_mask=not bool(allowed.any(axis=1).all()))]


def padded_mask(build: CanonicalFragment, mask: Tensor, keys: int) -> Tensor:
    """Return a mask that keeps queries from the keys which it does not reach."""
    missing = keys - mask.shape[-1]
    if missing <= 0:
        return mask
    pad = Pad((0,) * (2 * mask.rank - 1) + (missing,), value=0 if mask.dtype == "bool" else -inf)
    return build.made("longer_mask", pad, [mask], (*mask.shape[:-1], keys), mask.dtype, step="pad_mask")


def with_terms(
    build: CanonicalFragment, scores: Tensor, terms: Sequence[Term], name: str, dtype: str, *, step: str
) -> Tensor:
    """Return what the terms make of the scores, one element-wise task; the scores if there are none."""
    if not terms:
        return scores
    source, operands = "a", [scores]
    for term in terms:
        names = operand_names(len(operands) + len(term.operands))[len(operands) :]
        own = operand_names(len(term.operands) + 1)
        source = substitute(term.expression, {own[0]: source, **dict(zip(own[1:], names, strict=True))})
        operands += term.operands
    return build.computed(name, source, operands, scores.shape, dtype, step=step)


def product_of_heads(
    build: CanonicalFragment, x: Tensor, matrices: Tensor, name: str, dtype: str, *, is_transposed: bool = False
) -> Tensor:
    """Return ``X @ M``, or ``X @ M'``, as ``[b, n, s, m]``: heads of X that share one of M are rows of one product."""
    batch, number, length, inner = x.shape
    shared, columns = matrices.shape[1], matrices.shape[2 if is_transposed else 3]
    shape = (batch, shared, number // shared * length)
    rows = build.shaped(x, f"{name}_rows", (*shape, inner))
    product = build.made(name, MatMul(transpose_b=is_transposed), [rows, matrices], (*shape, columns), dtype)
    return build.shaped(product, f"{name}_by_head", (batch, number, length, columns))


def attend(build: CanonicalFragment, heads: Heads, y: Tensor, *, weights: Tensor | None = None) -> None:
    """``Y = softmax(terms(Q @ K')) @ V``: two products, and the softmax of whole rows of scores between them.

    Args:
        build: what is built.
        heads: what attends to what.
        y: ``[b, s, n * w]`` or ``[b, n, s, w]``.
        weights: where the softmax goes if the model uses it, ``[b, n, s, l]``.
    """
    attend_scores(build, heads, _scores(build, heads, heads.keys, heads.terms), y, weights=weights)


def _scores(build: CanonicalFragment, heads: Heads, keys: Tensor, terms: Sequence[Term], suffix: str = "") -> Tensor:
    """Return what the terms make of ``Q @ K'`` of some keys, a product in a wider type if there are terms."""
    dtype = sum_dtype(heads.queries.dtype) if terms else heads.dtype
    product = product_of_heads(build, heads.queries, keys, f"scores{suffix}", dtype, is_transposed=True)
    return with_terms(build, product, terms, f"biased{suffix}", heads.dtype, step=f"bias{suffix}")


def attend_scores(
    build: CanonicalFragment, heads: Heads, scores: Tensor, y: Tensor, *, weights: Tensor | None = None
) -> None:
    """``Y = softmax(scores) @ V``; rows all of whose scores are negative infinity become zero."""
    dtype, source = heads.dtype, heads.exponential
    top = build.reduced("largest", Reduction.MAX, [scores], [3], dtype=dtype, step="max")
    exponentials = build.computed("exponentials", source, [scores, top], scores.shape, dtype, step="exp")
    total = build.reduced("total", Reduction.SUM, [exponentials], [3], dtype=dtype, step="sum")
    shares = weights or build.array("weights", scores.shape, y.dtype)
    build.elementwise(heads.share, [exponentials, total], shares, step="divide")
    join_heads(build, product_of_heads(build, shares, heads.values, "mix", y.dtype), y)


def attend_by_blocks(build: CanonicalFragment, heads: Heads, y: Tensor) -> None:
    """``Y = softmax(terms(Q @ K')) @ V`` block of keys by block: no array holds more scores than those of a block.

    ``m' = max(m, max(S_j))``, ``P_j = exp(S_j - m')``, ``l' = l * exp(m - m') + sum(P_j)``,
    ``O' = O * exp(m - m') + P_j @ V_j``; in the end ``Y = O / l`` [dao22, algorithm 1].
    """
    keys = heads.keys.shape[2]
    size = max(LEAST_BLOCK, -(-keys // MOST_BLOCKS))
    state: _Running | None = None
    for number, start in enumerate(range(0, keys, size)):
        state = _block(build, heads, (start, min(start + size, keys)), state, number)
    assert state is not None
    order = (0, 1, 2, 3) if y.rank == 4 else _ROWS
    shape = tuple(state.mixed.shape[axis] for axis in order)
    result = y if y.shape == shape else build.array("joined", shape, y.dtype)
    build.elementwise(heads.share, [state.mixed, state.total], result, axes=[order] * 2, step="divide")
    build.view_as(result, y)


class _Running(Struct, frozen=True):
    """What is known after some blocks: the largest score, the sum of exponentials, the sum of weighted values."""

    largest: Tensor
    total: Tensor
    mixed: Tensor


def _block(
    build: CanonicalFragment, heads: Heads, keys: tuple[int, int], before: _Running | None, number: int
) -> _Running:
    dtype = heads.dtype

    def of_block(mask: Tensor) -> Tensor:  # what is the same for all keys stays whole
        return mask if mask.shape[-1] == 1 else build.part(f"mask{number}", mask, mask.rank - 1, *keys)

    terms = [Term(term.expression, tuple(map(of_block, term.operands))) for term in heads.terms]
    sides = (("keys", heads.keys), ("values", heads.values))
    block_keys, block_values = (build.part(f"{name}{number}", x, 2, *keys) for name, x in sides)
    scores = _scores(build, heads, block_keys, terms, f"{number}")
    largest = build.reduced(f"largest{number}", Reduction.MAX, [scores], [3], dtype=dtype, step=f"max{number}")
    if before is not None:
        largest = build.computed(f"top{number}", "max(a, b)", [largest, before.largest], largest.shape, dtype)
    source, name, operands = heads.exponential, f"exponentials{number}", [scores, largest]
    exponentials = build.computed(name, source, operands, scores.shape, dtype, step=f"exp{number}")
    total = build.reduced(f"total{number}", Reduction.SUM, [exponentials], [3], dtype=dtype, step=f"sum{number}")
    mixed = product_of_heads(build, exponentials, block_values, f"mix{number}", dtype)
    if before is None:
        return _Running(largest, total, mixed)
    factor = build.computed(f"factor{number}", heads.exponential, [before.largest, largest], largest.shape, dtype)
    sums = []
    for name, old, new in (("total", before.total, total), ("mixed", before.mixed, mixed)):
        step, operands = f"add_{name}{number}", [old, factor, new]
        sums.append(build.computed(f"all_{name}{number}", "a * b + c", operands, new.shape, dtype, step=step))
    return _Running(largest, sums[0], sums[1])
