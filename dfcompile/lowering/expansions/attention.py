"""Attention, ONNX's (opset 23 and later) and onnxruntime's: scaled products of queries and keys weigh the values."""

from collections.abc import Mapping
from itertools import accumulate, pairwise
from math import sqrt

import numpy as np

from dfcompile.frontend import AttributeValue
from dfcompile.lowering import CanonicalFragment, Operator, Tensor, attention, onnx_expansion
from dfcompile.lowering.attention import Attend, Heads, Term
from dfcompile.lowering.expansions.rotary_embedding import angles_at, rotate
from dfcompile.lowering.expressions import literal, sum_dtype
from dfcompile.lowering.operators import Concat, Elementwise, LookupElements, MatMul, Pad
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


_SEQLENS, _TOTAL = 5, 6  # positions of operands


@onnx_expansion("com.microsoft.GroupQueryAttention", "unfused", source="onnxruntime", default=True)
def group_query_attention(op: Operator, build: CanonicalFragment) -> None:
    """``Y = softmax(scale * Q @ K') @ V`` of what came before: a product, a softmax of whole rows, a product."""
    _group_query(op, build, attention.attend)


@onnx_expansion("com.microsoft.GroupQueryAttention", "flash", source="dao22")
def flash_group_query_attention(op: Operator, build: CanonicalFragment) -> None:
    """As `unfused`, by blocks of keys: rows are scaled anew where a larger score comes."""
    _group_query(op, build, attention.attend_by_blocks)


def _group_query(op: Operator, build: CanonicalFragment, attend_to: Attend) -> None:
    operands = {11: "head_sink", 12: "k_scale", 13: "v_scale", 14: "q_norm_weight", 15: "k_norm_weight"}
    attributes: dict[str, AttributeValue] = {"causal": 1, "k_quant_type": "NONE", "kv_cache_bit_width": 0}
    attributes |= {"qk_output": 0, "sliding_window_cache": 0, "v_quant_type": "NONE"}
    op.check_unknown(operands=operands, results={3: "output_qk"}, attributes=attributes)
    if op.integer("local_window_size", -1) == 0:
        raise op.unsupported("attribute 'local_window_size' is 0 against -1 or at least 1")
    op.refuse_if(op.integer("smooth_softmax", -1) == 1, "attribute 'smooth_softmax' is 1 against 0")
    heads, groups = op.integer("num_heads", 1), op.integer("kv_num_heads", 1)
    q, k, v = _tokens(op, build, heads, groups)
    _, length, _, width = q.shape
    (total,) = op.static_integers(_TOTAL, "total_sequence_length") or (0,)
    lengths = _Lengths(op, build, length, total)
    if op.integer("do_rotary", 0):
        tables = op.input(7), op.input(8)
        cosines, sines = angles_at(op, build, tables, op.optional_input(9) or lengths.positions())
        interleaved = op.integer("rotary_interleaved", 0) != 0
        sides = ((q, "rotated_queries"), (k, "rotated_keys"))
        q, k = (rotate(build, x, cosines, sines, interleaved=interleaved, name=name) for x, name in sides)
    queries = _by_head(build, q, "queries", op.real("scale", 0.0) or 1 / sqrt(width))
    keys, values = (
        lengths.cached(op.optional_input(2 + at), _by_head(build, x, name), op.optional_output(at), name)
        for at, (name, x) in enumerate((("keys", k), ("values", v)), 1)
    )
    terms, bias = attention.softcap_terms(op), op.optional_input(10)
    if bias is not None:
        terms.append(Term("a + b", (attention.padded_mask(build, bias, keys.shape[2]),), may_mask=True))
    terms += lengths.causal(keys.shape[2], op.integer("local_window_size", -1))
    y = op.output()
    attend_to(build, Heads(queries, keys, values, tuple(terms), sum_dtype(y.dtype)), y)


def _tokens(op: Operator, build: CanonicalFragment, heads: int, groups: int) -> tuple[Tensor, ...]:
    """Return queries, keys and values as ``[b, s, heads, h]``, also where they stand side by side."""
    q, k, v = op.input(0), op.optional_input(1), op.optional_input(2)
    batch, length, columns = q.shape
    width = columns // (heads if k is not None else heads + 2 * groups)
    if k is not None and v is not None:
        sides = (("query", q, heads), ("key", k, groups), ("value", v, groups))
        return tuple(build.view(x, name, (batch, length, count, width)) for name, x, count in sides)
    together = build.view(q, "together", (batch, length, heads + 2 * groups, width))
    named = zip(("query", "key", "value"), pairwise((0, heads, heads + groups, heads + 2 * groups)), strict=True)
    return tuple(build.part(name, together, 2, *ends) for name, ends in named)


def _by_head(build: CanonicalFragment, x: Tensor, name: str, factor: float = 1.0) -> Tensor:
    batch, length, heads, width = x.shape
    flat = build.view(x, f"{name}_flat", (batch, length, heads * width))
    return attention.separate_heads(build, flat, heads, name, factor=factor)


class _Lengths:
    """How many keys of each batch come before the queries: a number, or what the operand ``seqlens_k`` says."""

    def __init__(self, op: Operator, build: CanonicalFragment, queries: int, total: int) -> None:
        self._build = build
        self._queries, self._total = queries, total
        seqlens = op.input(_SEQLENS)
        self._last = build.view(seqlens, "last_places", (seqlens.elements, 1)) if seqlens.value is None else seqlens
        known = set() if seqlens.value is None else {int(place) for place in np.ravel(seqlens.value)}
        self._before = 0 if queries == total else min(known) + 1 - queries if len(known) == 1 else None

    def positions(self) -> Tensor:
        """Return the place of each query, ``[b or 1, s]``."""
        places = np.arange(self._queries, dtype=np.int64)[None]
        if self._before is not None:
            return self._build.parameter("positions", places + self._before)
        steps, shape = self._build.parameter("steps", places + 1 - self._queries), (self._last.elements, self._queries)
        return self._build.made("positions", Elementwise("a + b"), [self._rows(2), steps], shape, "int64")

    def causal(self, keys: int, window: int) -> list[Term]:
        """Return the term that hides keys behind a query, or too far before it, if there are such keys."""
        left = window - 1 if window > 0 else -1
        if self._before is not None:
            return attention.causal_terms(self._build, (self._queries, keys), self._before, (left, 0))
        places = self._build.parameter("places", np.arange(keys, dtype=np.int64))
        steps = np.arange(1 - self._queries, 1, dtype=np.int64).reshape(self._queries, 1)
        source = "b <= c + d" + (f" and c + d - b <= {left}" if left >= 0 else "")
        return [Term(f"a if {source} else -inf", (places, self._rows(4), self._build.parameter("own_places", steps)))]

    def cached(self, past: Tensor | None, new: Tensor, result: Tensor | None, name: str) -> Tensor:
        """Return all keys (or values): those before, the new ones, and zeros up to the end of the cache."""
        stored = 0 if past is None else past.shape[2]
        length = max(stored, self._total)
        if self._before is None:
            return self._looked_up(past, new, result, length, name)
        build, batch, groups, width = self._build, new.shape[0], new.shape[1], new.shape[3]
        used = past if self._before else None
        if used is not None and self._before < stored:
            used = build.copied(f"used_{name}", used, ("i0", "i1", "i2", "i3"), (batch, groups, self._before, width))
        known = self._before + self._queries
        whole = attention.appended(build, used, new, result if length == known else None, f"present_{name}")
        if length == known:
            return whole
        longer = result or build.array(f"cache_of_{name}", (batch, groups, length, width), new.dtype)
        build.add(Pad((0,) * 6 + (length - known, 0)), [whole], longer, step=f"cache_{name}")
        return longer

    def _looked_up(self, past: Tensor | None, new: Tensor, result: Tensor | None, length: int, name: str) -> Tensor:
        """Return as `cached` where the number of keys before is only known when the model runs: a table is read."""
        build, stored, queries = self._build, 0 if past is None else past.shape[2], self._queries
        batch, groups, _, width = new.shape
        table = attention.appended(build, past, new, None, f"all_{name}")
        shape = (batch, groups, length, width)
        places = build.parameter(f"places_of_{name}", np.arange(length, dtype=np.int64).reshape(length, 1))
        before = f"b + 1 - {queries}"
        source = f"a if a < {before} else a - ({before}) + {stored} if a <= b else 0"
        indices = build.made(f"where_{name}", Elementwise(source), [places, self._rows(4)], shape, "int64")
        found = build.made(f"found_{name}", LookupElements(2), [table, indices], shape, new.dtype)
        kept = result or build.array(f"cache_of_{name}", shape, new.dtype)
        build.add(Elementwise("a if b <= c else 0"), [found, places, self._rows(4)], kept, step=f"cache_{name}")
        return kept

    def _rows(self, rank: int) -> Tensor:
        """Return the place of each batch's last key with so many dimensions, the first of them that of batches."""
        return self._build.view(self._last, f"last_places{rank}", (self._last.elements, *(1,) * (rank - 1)))
