"""The notebook's kernels of one layer, dimension for dimension; what is wrong with them is kept on purpose."""

import math
from collections.abc import Mapping

from msgspec import Struct

from dfcompile.errors import UserError

PREFILL_ROOT = 1.73  # the notebook's square root of 3, which it takes for the mean of a ramp
WEIGHTS_SECOND = ("Ma_Mw", "Va_Mw")
WEIGHTS_FIRST = ("Mw_Ma", "Vw_Va")
GROUPED = ("Ma_Mqa", "Va_Mqa")
PLAIN = ("Ma_Ma", "Va_Va")
CACHE = ("KVCache", "Async_KVCache")


class NotebookModel(Struct, frozen=True):
    """The five fields that the notebook reads."""

    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    layers: int

    @property
    def sub_dmodel(self) -> int:
        """What the notebook takes for the head's extent."""
        return self.hidden // self.heads

    @property
    def grouped(self) -> float:
        """Query heads per head of keys and values."""
        return self.heads / self.kv_heads


class NotebookKernel(Struct, frozen=True):
    """One row of the notebook's tables; what does not apply is none.

    Attributes:
        kind: type.
        name: of the row.
        m: first dimension.
        k: second dimension.
        n: third dimension.
        batch: sequences.
        grouped: ``grouped_q``, which a slip of the pen keeps at 1.
        compute: multiply-accumulates.
        weight: elements.
        kv_cache: elements.
    """

    kind: str
    name: str
    m: int
    k: int
    n: int
    batch: int
    grouped: float
    compute: int | float | None
    weight: int | None
    kv_cache: int | None


def notebook_model(values: Mapping[str, object], where: str) -> NotebookModel:
    """Return the notebook's model of a configuration.

    Raises:
        UserError: one of the five keys is missing, as the notebook's KeyError has it, or is no whole number.
    """
    keys = (
        "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers",
    )  # fmt: skip
    found = []
    for key in keys:
        value = values.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UserError(f"{where}: key {key!r}: found {value!r} against a whole number, which the notebook needs")
        found.append(value)
    return NotebookModel(*found)


def kernel(kind: str, name: str, m: int, k: int, n: int, batch: int, *, grouped_q: float = 1) -> NotebookKernel:
    """Return a row: what it computes and holds follows from its kind.

    Raises:
        UserError: an unknown kind, or groups in one that has none.
    """
    if grouped_q > 1 and kind not in GROUPED:
        raise UserError(f"kernel {name!r}: found kind {kind!r} against {' or '.join(GROUPED)} with grouped_q")
    if kind not in (*WEIGHTS_SECOND, *WEIGHTS_FIRST, *GROUPED, *PLAIN, *CACHE):
        raise UserError(f"kernel {name!r}: unknown kind {kind!r}")
    volume = m * k * n * batch
    if kind in CACHE:
        return NotebookKernel(kind, name, m, k, n, batch, grouped_q, None, None, volume)
    weight = k * n if kind in WEIGHTS_SECOND else m * k if kind in WEIGHTS_FIRST else None
    compute = m * grouped_q * k * n * batch if grouped_q != 1 else volume
    return NotebookKernel(kind, name, m, k, n, batch, grouped_q, compute, weight, None)


def _feed_forward(model: NotebookModel, kind: str, rows: int, batch: int) -> tuple[NotebookKernel, ...]:
    hidden, inner = model.hidden, model.intermediate
    return (
        kernel(kind, "O*W", rows, hidden, hidden, batch),
        kernel(kind, "FFN_up", rows, hidden, inner, batch),
        kernel(kind, "FFN_gate", rows, hidden, inner, batch),
        kernel(kind, "FFN_down", rows, inner, hidden, batch),
    )


def _columns(model: NotebookModel) -> int:
    return model.sub_dmodel * (model.heads + model.kv_heads * 2)


def prefill(model: NotebookModel, length: int, batch: int, *, groups: bool = False) -> tuple[NotebookKernel, ...]:
    """Return the kernels of a prompt; ``groups`` mends the slip of the pen alone, which counts heads twice."""
    grouped = model.grouped if groups else 1
    return (
        kernel("Ma_Mw", "Q/K/V*W", length, model.hidden, _columns(model), batch),
        kernel("Ma_Mqa", "Q*gK", length, model.hidden, length, batch, grouped_q=grouped),
        kernel("Ma_Mqa", "Q*gK*gV", length, model.hidden, length, batch, grouped_q=grouped),
        *_feed_forward(model, "Ma_Mw", length, batch),
        kernel("Async_KVCache", "KVCache_Store", length, model.sub_dmodel, 2 * model.kv_heads, batch),
    )


def decode(model: NotebookModel, context: int, batch: int) -> tuple[NotebookKernel, ...]:
    """Return the kernels of one more token per sequence."""
    return (
        kernel("Va_Mw", "Q/K/V*W", 1, model.hidden, _columns(model), batch),
        kernel("KVCache", "KVCache_Read", context, model.sub_dmodel, 2 * model.kv_heads, batch),
        kernel("Va_Mqa", "Q*gK", 1, model.hidden, context, batch),
        kernel("Va_Mqa", "Q*gK*gV", 1, model.hidden, context, batch),
        *_feed_forward(model, "Va_Mw", 1, batch),
    )


class ChunkSizes(Struct, frozen=True):
    """Tokens of a chunk: those of a prompt after ``prompt_context``, and decodes at ``decode_context``."""

    prompt_context: int
    prompt: int
    decode_context: int
    decodes: int


def chunk_sizes(length: int, answer: int, chunk: int) -> ChunkSizes:
    """Return the notebook's mean chunk; dividing by the root of 3 takes the mean square for the mean."""
    decodes = chunk * answer // (length + answer)
    prompt = chunk - decodes
    return ChunkSizes(math.trunc(length / PREFILL_ROOT - prompt // 2), prompt, length + answer // 2, decodes)


def chunked(model: NotebookModel, sizes: ChunkSizes) -> tuple[NotebookKernel, ...]:
    """Return the kernels of a chunk; those of decodes have the cache's width where the context belongs."""
    hidden, dim, pair = model.hidden, model.sub_dmodel, 2 * model.kv_heads
    tokens, narrow = sizes.prompt + sizes.decodes, dim * model.kv_heads
    return (
        kernel("Ma_Mw", "Q/K/V*W", tokens, hidden, _columns(model), 1),
        kernel("KVCache", "dKVCache_Read", sizes.decode_context, dim, pair, sizes.decodes),
        kernel("Va_Mqa", "dQ*gK", 1, hidden, narrow, sizes.decodes),
        kernel("Va_Mqa", "dQ*gK*gV", 1, hidden, narrow, sizes.decodes),
        kernel("Async_KVCache", "pKVCache_Read", sizes.prompt_context, dim, pair, 1),
        kernel("Ma_Mqa", "pQ*gK", sizes.prompt, hidden, sizes.prompt_context, 1),
        kernel("Ma_Mqa", "pQ*gK*gV", sizes.prompt, hidden, sizes.prompt_context, 1),
        kernel("Async_KVCache", "KVCache_Store", sizes.prompt, dim, pair, 1),
        *_feed_forward(model, "Ma_Mw", tokens, 1),
    )
