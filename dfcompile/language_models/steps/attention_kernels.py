"""Kernels of attention with heads of keys and values of their own: MHA, GQA, MQA."""

from collections.abc import Iterator

from dfcompile.language_models.formats import NumberFormat, Precision
from dfcompile.language_models.model import Attention
from dfcompile.language_models.steps.batch import Batch, Sequences, live, pairs
from dfcompile.language_models.steps.choices import StepChoices
from dfcompile.language_models.steps.kernel import Kernel, KernelKind, Work
from dfcompile.records import replace


def attended(group: Sequences) -> tuple[KernelKind, Work, str]:
    """Return kind, efficiency and name of a product with the cache, by what one sequence brings."""
    if group.new == 1:
        return KernelKind.VECTOR_GROUPED, Work.DECODE_ATTENTION, "attention_decode"
    return KernelKind.MATRIX_GROUPED, Work.PREFILL_ATTENTION, "attention_prefill"


def kv_elements_read(elements: int, live_tokens: int, group: Sequences, choices: StepChoices) -> int:
    """Elements of the cache that a group reads, ``elements`` of each token; a prefix that all share is read once."""
    shared = min(choices.shared_prefix, live_tokens)
    return elements * ((live_tokens - shared) * group.count + shared)


def projection(
    name: str, rows: int, k: int, n: int, precision: Precision, which: str = "attention", batch: int = 1
) -> Kernel:
    """Return the product of ``rows`` tokens with a matrix of weights of some class, ``batch`` times."""
    weights, activations = getattr(precision, which), precision.activations
    kind = KernelKind.VECTOR_WEIGHTS if rows == 1 else KernelKind.MATRIX_WEIGHTS
    return Kernel(
        kind, Work.GEMM, name, rows, k, n, batch,
        macs=rows * batch * k * n,
        weight_bytes=weights.bytes_of(batch * k * n),
        act_in_bytes=activations.bytes_of(rows * batch * k),
        act_out_bytes=activations.bytes_of(rows * batch * n),
        vector_elements=batch * k * n * precision.widens(weights),
        rate=precision.product(weights),
    )  # fmt: skip


def vector_kernel(
    name: str,
    shape: tuple[int, int, int],
    read: int,
    written: int,
    activations: NumberFormat,
    passed: int,
    batch: int = 1,
) -> Kernel:
    """Return a kernel that reads, writes and passes the vector unit with so many elements of activations."""
    return Kernel(
        KernelKind.VECTOR, Work.VECTOR, name, *shape, batch,
        act_in_bytes=activations.bytes_of(read),
        act_out_bytes=activations.bytes_of(written),
        vector_elements=passed,
        rate=activations.name,
    )  # fmt: skip


def kv_store(heads: int, width: int, tokens: int, precision: Precision) -> Kernel:
    """Return the transfer of new keys and values to the cache."""
    return Kernel(
        KernelKind.KV_STORE, Work.TRANSFER, "kv_store", tokens, heads, width,
        kv_write_bytes=precision.kv.bytes_of(tokens * heads * width),
        rate=precision.activations.name,
    )  # fmt: skip


def attention_kernels(
    attention: Attention, hidden: int, batch: Batch, precision: Precision, choices: StepChoices
) -> Iterator[Kernel]:
    """Yield projections, the cache's growth and the attention of each group of sequences."""
    tokens = batch.tokens
    yield projection("qkv_proj", tokens, hidden, attention.projected, precision)
    yield kv_store(attention.kv_heads, attention.qk_dim + attention.v_dim, tokens, precision)
    for group in batch.groups:
        yield from _attention(attention, group, precision, choices)
    yield projection("o_proj", tokens, attention.heads * attention.v_dim, hidden, precision)


def _attention(attention: Attention, group: Sequences, precision: Precision, choices: StepChoices) -> Iterator[Kernel]:
    """Yield one kernel whose scores stay on the chip: only queries, keys, values and results move; or several."""
    reach, activations, cached = attention.reach, precision.activations, precision.kv
    tokens, queries = live(reach, group.past, group.new), group.new * group.count * attention.heads
    seen = attention.heads * pairs(reach, group.past, group.new, causal=choices.causal) * group.count
    keys, values = (
        kv_elements_read(attention.kv_heads * width, tokens, group, choices)
        for width in (attention.qk_dim, attention.v_dim)
    )
    fused = Kernel(
        *attended(group),
        group.new * attention.grouped, attention.qk_dim, tokens, group.count * attention.kv_heads,
        macs=(attention.qk_dim + attention.v_dim) * seen,
        act_in_bytes=activations.bytes_of(queries * attention.qk_dim),
        act_out_bytes=activations.bytes_of(queries * attention.v_dim),
        kv_read_bytes=cached.bytes_of(keys + values),
        vector_elements=seen + (keys + values) * precision.widens(cached),
        rate=precision.product(cached),
    )  # fmt: skip
    if choices.flash:
        yield fused
        return
    first = replace(fused, kv_read_bytes=cached.bytes_of(keys), vector_elements=seen + keys * precision.widens(cached))
    last = replace(
        fused, act_in_bytes=0, kv_read_bytes=cached.bytes_of(values), vector_elements=values * precision.widens(cached)
    )
    yield from unfused(first, last, attention.v_dim, seen, activations)


def unfused(first: Kernel, last: Kernel, width: int, seen: int, activations: NumberFormat) -> Iterator[Kernel]:
    """Yield the product of scores, their softmax, and that of values, where scores are written and read twice.

    Args:
        first: the fused kernel, with what the product of scores reads beside passing its scores.
        last: the fused kernel, with what the product of values reads beside scores.
        width: elements of a value.
        seen: pairs of queries of all heads and keys.
        activations: format of scores.
    """
    name, shape = first.name, (first.m, 1, first.n)
    elements = first.m * first.n * first.batch
    scores = activations.bytes_of(elements)
    yield replace(
        first, name=f"{name}_scores", macs=first.macs - width * seen, act_out_bytes=scores,
        vector_elements=first.vector_elements - seen,
    )  # fmt: skip
    yield vector_kernel(f"{name}_softmax", shape, elements, elements, activations, seen, first.batch)
    yield replace(
        last, name=f"{name}_values", k=first.n, n=width, macs=width * seen, act_in_bytes=scores + last.act_in_bytes
    )
