"""Attention, ONNX's (opset 23 and later) and onnxruntime's: scaled products of queries and keys weigh the values."""

from collections.abc import Mapping
from itertools import accumulate, pairwise
from math import sqrt

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, attention, onnx_expansion
from dfcompile.lowering.attention import Attend, Heads, Term
from dfcompile.lowering.expressions import literal, sum_dtype
from dfcompile.lowering.operators import Concat, MatMul
from dfcompile.records import replace

_PRECISIONS: Mapping[int, str] = {1: "float32", 10: "float16", 11: "float64"}  # as ONNX numbers element types
_RAW, _CAPPED, _BIASED, _WEIGHTS = range(4)  # what the result 'qk_matmul_output' is


@onnx_expansion("Attention", "unfused", default=True)
def unfused_attention(op: Operator, build: CanonicalFragment) -> None:
    """``Y = softmax(scale * Q @ K' + bias) @ V``: a product, a softmax of whole rows of scores, a product."""
    cap, (heads, bias) = attention.softcap_terms(op), _heads(op, build)
    heads = replace(heads, terms=(*cap, *bias))
    shown = op.optional_output(3)
    if shown is None or op.integer("qk_matmul_output_mode", _RAW) == _WEIGHTS:
        attention.attend(build, heads, op.output(), weights=shown)
        return
    dtype = sum_dtype(heads.queries.dtype)
    scores = attention.product_of_heads(build, heads.queries, heads.keys, "scores", dtype, is_transposed=True)
    stages = {_RAW: ([], [*cap, *bias]), _CAPPED: (cap, bias), _BIASED: ([*cap, *bias], [])}
    before, after = stages[op.integer("qk_matmul_output_mode", _RAW, stages, "0 to 3")]
    scores = attention.with_terms(build, scores, before, "scores_before", dtype, step="bias_before")
    build.elementwise("a", [scores], shown, step="show")
    scores = attention.with_terms(build, scores, after, "scores_after", dtype, step="bias_after")
    attention.attend_scores(build, heads, scores, op.output())


@onnx_expansion("Attention", "flash", source="dao22")
def flash_attention(op: Operator, build: CanonicalFragment) -> None:
    """``Y = softmax(scale * Q @ K' + bias) @ V`` by blocks of keys: rows are scaled anew where a larger score comes."""
    if op.optional_output(3) is not None:
        raise op.unsupported("the result 'qk_matmul_output' is of all scores against those of a block")
    heads, bias = _heads(op, build)
    attention.attend_by_blocks(build, replace(heads, terms=(*attention.softcap_terms(op), *bias)), op.output())


def _heads(op: Operator, build: CanonicalFragment) -> tuple[Heads, list[Term]]:
    """Return queries, keys and values by head, and what keeps queries from keys or is added."""
    q, k, v = (op.input(position) for position in range(3))
    is_flat = q.rank == 3
    counts = (op.integer("q_num_heads", 0), op.integer("kv_num_heads", 0)) if is_flat else (q.shape[1], k.shape[1])
    op.refuse_if(counts[0] % counts[1], f"{counts[0]} heads of queries against a multiple of {counts[1]} of keys")
    width = q.shape[2] // counts[0] if is_flat else q.shape[3]
    queries = attention.separate_heads(build, q, counts[0], "queries", factor=op.real("scale", 1 / sqrt(width)))
    past = op.optional_input(4), op.optional_input(5)
    if (past[0] is None) != (past[1] is None):
        raise op.unsupported("one of 'past_key' and 'past_value' is omitted against both or none")
    by_head = ((name, attention.separate_heads(build, x, counts[1], name)) for name, x in (("keys", k), ("values", v)))
    keys, values = (attention.with_past(op, build, x, name, (4, 5)) for name, x in by_head)
    heads = Heads(queries, keys, values, (), _precision(op))
    return heads, _bias(op, build, heads, 0 if past[0] is None else past[0].shape[2])


def _precision(op: Operator) -> str:
    """Return the element type of the softmax: as asked for, else the operands' own or a wider one."""
    if "softmax_precision" not in op.attributes:
        return sum_dtype(op.input(0).dtype)
    known = ", ".join(f"{number} ({name})" for number, name in _PRECISIONS.items())
    return _PRECISIONS[op.integer("softmax_precision", 0, _PRECISIONS, known)]


def _bias(op: Operator, build: CanonicalFragment, heads: Heads, before: int) -> list[Term]:
    queries, keys = heads.scores_shape[2:]
    terms = []
    mask, lengths = op.optional_input(3), op.optional_input(6)
    if mask is not None:
        is_choice = mask.dtype == "bool"
        longer = attention.padded_mask(build, mask, keys)
        terms.append(Term("a if b else a - inf" if is_choice else "a + b", (longer,), may_mask=True))
    left, right = op.integer("left_window_size", -1), op.integer("right_window_size", -1)
    if op.integer("is_causal", 0):
        right = 0 if right < 0 else min(right, 0)
    if lengths is None:
        return [*terms, *attention.causal_terms(build, (queries, keys), before, (left, right))]
    op.refuse_if(before, "'nonpad_kv_seqlen' and 'past_key' against one of them")
    return [*terms, _of_lengths(build, lengths, (queries, keys), (left, right))]


def _of_lengths(build: CanonicalFragment, lengths: Tensor, extents: tuple[int, int], window: tuple[int, int]) -> Term:
    """Return the term that keeps queries from keys beyond the length of their batch, or outside of a window."""
    queries, keys = extents
    places = build.parameter("places", np.arange(keys, dtype=np.int64))
    source, operands = "b < c", [places, build.view(lengths, "lengths", (lengths.elements, 1, 1, 1))]
    if max(window) >= 0:
        # The last query stands at the last key of its batch.
        operands.append(build.parameter("behind", np.arange(-queries, 0, dtype=np.int64).reshape(queries, 1)))
        if window[0] >= 0:
            source += f" and c + d - b <= {window[0]}"
        if window[1] >= 0:
            source += f" and b - c - d <= {window[1]}"
    return Term(f"a if {source} else a - inf", tuple(operands), may_mask=True)


_FILTER = -10000.0  # added to the score of a key that a mask leaves out, where a node gives no other number


def _multi_head(op: Operator, build: CanonicalFragment, attend_to: Attend) -> None:
    op.check_unknown(operands={8: "past_sequence_length", 9: "cache_indirection"}, results={3: "qk"})
    if op.optional_input(1) is None or op.optional_input(2) is None or op.input(1).rank == 5:
        raise op.unsupported("queries, keys and values side by side in one operand against three operands")
    q, k, v, count = op.input(0), op.input(1), op.input(2), op.integer("num_heads", 1)
    width = q.shape[2] // count
    scale = op.real("scale", 0.0) or 1 / sqrt(width)
    bias, widths = op.optional_input(3), (q.shape[2], q.shape[2], v.shape[2] if v.rank == 3 else 0)
    op.refuse_if(bias is not None and k.rank == 4, "the operand 'bias' with keys by head against keys side by side")
    named = zip(("queries", "keys", "values"), pairwise(accumulate(widths, initial=0)), strict=True)
    biases = [None if bias is None else build.part(f"bias_of_{name}", bias, 0, *ends) for name, ends in named]
    queries = attention.separate_heads(build, q, count, "queries", bias=biases[0], factor=scale)
    sides = (("keys", k, biases[1]), ("values", v, biases[2]))
    by_head = ((name, attention.separate_heads(build, x, count, name, bias=part)) for name, x, part in sides)
    keys, values = (attention.with_past(op, build, x, name, (6, 7)) for name, x in by_head)
    heads = Heads(queries, keys, values, (), sum_dtype(q.dtype))
    past_keys, masks = op.optional_input(6), (op.optional_input(4), op.optional_input(5))
    before = 0 if past_keys is None else past_keys.shape[2]
    attend_to(build, _masked(op, build, heads, masks, before), op.output())


@onnx_expansion("com.microsoft.MultiHeadAttention", "unfused", source="onnxruntime", default=True)
def multi_head_attention(op: Operator, build: CanonicalFragment) -> None:
    """``Y = softmax(scale * Q @ K' + bias) @ V``: a product, a softmax of whole rows of scores, a product."""
    _multi_head(op, build, attention.attend)


@onnx_expansion("com.microsoft.MultiHeadAttention", "flash", source="dao22")
def flash_multi_head_attention(op: Operator, build: CanonicalFragment) -> None:
    """``Y = softmax(scale * Q @ K' + bias) @ V`` by blocks of keys: rows are scaled anew where a larger score comes."""
    _multi_head(op, build, attention.attend_by_blocks)


def _projected(op: Operator, build: CanonicalFragment, attend_to: Attend) -> None:
    op.check_unknown(operands={6: "past_sequence_length"}, attributes={"do_rotary": 0, "past_present_share_buffer": 0})
    x, weights, bias, past = op.input(0), op.input(1), op.optional_input(2), op.optional_input(4)
    count, columns = op.integer("num_heads", 1), weights.shape[1]
    widths = op.integers("qkv_hidden_sizes", (columns // 3,) * 3) or (columns // 3,) * 3
    batch, length = x.shape[:2]
    dtype = sum_dtype(x.dtype) if bias else x.dtype
    product = build.made("projected", MatMul(), [x, weights], (batch, length, columns), dtype, step="project")
    if bias is not None:
        operands = [product, bias]
        product = build.computed("biased_projection", "a + b", operands, product.shape, x.dtype, step="project_bias")
    parts = []
    for at, (name, width) in enumerate(zip(("queries", "keys", "values"), widths, strict=True)):
        read = ("i0", "i2", f"{sum(widths[:at])} + {width // count}*i1 + i3")
        parts.append(build.copied(f"{name}_by_head", product, read, (batch, count, length, width // count)))
    scale = op.real("scale", 0.0) or 1 / sqrt(widths[0] // count)
    queries = attention.separate_heads(build, parts[0], count, "queries", factor=scale)
    keys, values = (
        attention.appended(build, None if past is None else _past(build, past, at), part, None, f"present_{name}")
        for at, (name, part) in enumerate(zip(("keys", "values"), parts[1:], strict=True))
    )
    present = op.optional_output(1)
    if present is not None:
        both = [build.view(part, f"{part.name}_part", (1, *part.shape)) for part in (keys, values)]
        build.add(Concat(0), both, present, step="present")
    heads = Heads(queries, keys, values, (), sum_dtype(x.dtype))
    masks = op.optional_input(3), op.optional_input(5)
    attend_to(build, _masked(op, build, heads, masks, 0 if past is None else past.shape[3]), op.output())


@onnx_expansion("com.microsoft.Attention", "unfused", source="onnxruntime", default=True)
def projected_attention(op: Operator, build: CanonicalFragment) -> None:
    """``Y = softmax(scale * Q @ K' + bias) @ V`` with Q, K and V side by side in ``X @ weights + bias``."""
    _projected(op, build, attention.attend)


@onnx_expansion("com.microsoft.Attention", "flash", source="dao22")
def flash_projected_attention(op: Operator, build: CanonicalFragment) -> None:
    """As `unfused`, by blocks of keys: rows are scaled anew where a larger score comes."""
    _projected(op, build, attention.attend_by_blocks)


def _past(build: CanonicalFragment, past: Tensor, at: int) -> Tensor:
    """Return the keys or the values of ``past[2, b, n, p, h]``."""
    return build.copied(f"past{at}", past, (str(at), "i0", "i1", "i2", "i3"), past.shape[1:])


def _masked(
    op: Operator, build: CanonicalFragment, heads: Heads, masks: tuple[Tensor | None, Tensor | None], before: int
) -> Heads:
    """Return the heads with what is added to their scores: a bias, and what masks leave out.

    Args:
        op: the operator.
        build: what is built.
        heads: with all keys.
        masks: of keys, and the bias.
        before: keys before the first query's own.
    """
    mask, bias = masks
    batch, _, queries, keys = heads.scores_shape
    terms = []
    if bias is not None:
        terms.append(Term("a + b", (bias,), may_mask=True))
    if mask is not None:
        # Added, as onnxruntime does: a query whose keys are all left out attends to all of them.
        left_out = literal(op.real("mask_filter_value", 0.0) or _FILTER, "float32")
        if mask.shape in ((batch, keys), (batch, queries, keys)):
            shape = (batch, 1, queries if mask.rank == 3 else 1, keys)
            terms.append(Term(f"a if b else a + {left_out}", (build.view(mask, "mask", shape),)))
        elif mask.shape == (batch,):
            places = build.parameter("places", np.arange(keys, dtype=np.int32))
            lengths = build.view(mask, "lengths", (batch, 1, 1, 1))
            terms.append(Term(f"a if b < c else a + {left_out}", (places, lengths)))
        else:
            raise op.unsupported(f"a mask {mask} against one element per key, per query and key, or lengths")
    if op.integer("unidirectional", 0):
        if keys != before + queries:
            # Of more keys onnxruntime hides none from the last query.
            sizes = f"{queries} queries and {keys - before} keys of theirs"
            raise op.unsupported(f"attribute 'unidirectional' with {sizes}")
        terms += attention.causal_terms(build, (queries, keys), before)
    return replace(heads, terms=tuple(terms))
