"""ONNX Attention (opset 23 and later): scaled products of queries and keys weigh the values."""

from collections.abc import Mapping
from math import sqrt

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, attention, onnx_expansion
from dfcompile.lowering.attention import Heads, Term
from dfcompile.lowering.expressions import sum_dtype
from dfcompile.records import replace

_PRECISIONS: Mapping[int, str] = {1: "float32", 10: "float16", 11: "float64"}  # as ONNX numbers element types
_RAW, _CAPPED, _BIASED, _WEIGHTS = range(4)  # what the result 'qk_matmul_output' is


@onnx_expansion("Attention", "unfused", default=True)
def unfused_attention(op: Operator, build: CanonicalFragment) -> None:
    """``Y = softmax(scale * Q @ K' + bias) @ V``: a product, a softmax of whole rows of scores, a product."""
    cap, (heads, bias) = attention.softcap_terms(op), _heads(op, build)
    heads = replace(heads, terms=(*cap, *bias))
    mode, shown = op.integer("qk_matmul_output_mode", _RAW), op.optional_output(3)
    if shown is None or mode == _WEIGHTS:
        attention.attend(build, heads, op.output(), weights=shown)
        return
    dtype = sum_dtype(heads.queries.dtype)
    scores = attention.product_of_heads(build, heads.queries, heads.keys, "scores", dtype, is_transposed=True)
    stages = {_RAW: ([], [*cap, *bias]), _CAPPED: (cap, bias), _BIASED: ([*cap, *bias], [])}
    if mode not in stages:
        raise op.unsupported(f"attribute 'qk_matmul_output_mode' is {mode} against 0 to 3")
    before, after = stages[mode]
    scores = attention.with_terms(build, scores, before, "scores_before", dtype, step="bias_before")
    build.elementwise("a", [scores], shown, step="show")
    scores = attention.with_terms(build, scores, after, "scores_after", dtype, step="bias_after")
    attention.attend_scores(build, heads, scores, op.output())


@onnx_expansion("Attention", "flash", source="dao22")
def flash_attention(op: Operator, build: CanonicalFragment) -> None:
    """``Y = softmax(scale * Q @ K' + bias) @ V`` by blocks of keys: rows are scaled anew where a larger score comes."""
    if op.optional_output(3) is not None:
        raise op.unsupported("the result 'qk_matmul_output' is of all scores against those of a block (take 'unfused')")
    heads, bias = _heads(op, build)
    attention.attend_by_blocks(build, replace(heads, terms=(*attention.softcap_terms(op), *bias)), op.output())


def _heads(op: Operator, build: CanonicalFragment) -> tuple[Heads, list[Term]]:
    """Return queries, keys and values by head, and what keeps queries from keys or is added."""
    q, k, v = (op.input(position) for position in range(3))
    given = (op.integer("q_num_heads", 0), op.integer("kv_num_heads", 0))
    counts = (q.shape[1], k.shape[1]) if q.rank == 4 else given
    if q.rank == 3 and (min(counts) < 1 or any(x.shape[2] % n for x, n in ((q, counts[0]), (k, counts[1])))):
        raise op.unsupported(f"'q_num_heads' and 'kv_num_heads' are {given} against divisors of the columns")
    if counts[0] % counts[1]:
        raise op.unsupported(f"{counts[0]} heads of queries against a multiple of {counts[1]} of keys")
    width = q.shape[3] if q.rank == 4 else q.shape[2] // counts[0]
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
    number = op.integer("softmax_precision", 0)
    if number not in _PRECISIONS:
        known = ", ".join(f"{number} ({name})" for number, name in _PRECISIONS.items())
        raise op.unsupported(f"attribute 'softmax_precision' is {number} against {known}")
    return _PRECISIONS[number]


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
    if before:
        raise op.unsupported("'nonpad_kv_seqlen' and 'past_key' against one of them")
    return [*terms, _of_lengths(build, lengths, (queries, keys), (left, right))]


def _of_lengths(build: CanonicalFragment, lengths: Tensor, extents: tuple[int, int], window: tuple[int, int]) -> Term:
    """Return the term that keeps queries from keys beyond the length of their batch, or outside of a window."""
    queries, keys = extents
    places = build.parameter("places", np.arange(keys, dtype=np.int64))
    limits = build.view(lengths, "lengths", (lengths.elements, 1, 1, 1))
    source, operands = "b < c", [places, limits]
    if max(window) >= 0:
        # The last query stands at the last key of its batch.
        operands.append(build.parameter("behind", np.arange(-queries, 0, dtype=np.int64).reshape(queries, 1)))
        if window[0] >= 0:
            source += f" and c + d - b <= {window[0]}"
        if window[1] >= 0:
            source += f" and b - c - d <= {window[1]}"
    return Term(f"a if {source} else a - inf", tuple(operands), may_mask=True)
