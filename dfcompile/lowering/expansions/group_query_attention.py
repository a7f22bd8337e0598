"""GroupQueryAttention of onnxruntime: heads of queries share heads of keys and values, which a cache keeps."""

from itertools import pairwise
from math import sqrt

import numpy as np

from dfcompile.frontend import AttributeValue
from dfcompile.lowering import CanonicalFragment, Operator, Tensor, attention, onnx_expansion
from dfcompile.lowering.attention import Attend, Heads, Term
from dfcompile.lowering.expansions.rotary_embedding import angles_at, rotate
from dfcompile.lowering.expressions import sum_dtype
from dfcompile.lowering.operators import Elementwise, LookupElements, Pad

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
