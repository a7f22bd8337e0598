"""Kernels of attention: with heads of keys and values of their own (MHA, GQA, MQA), or latent [deepseek24]."""

from collections.abc import Iterator

from dfcompile.language_models.formats import NumberFormat, Precision
from dfcompile.language_models.model import Attention, LatentAttention
from dfcompile.language_models.steps.batch import Batch, Sequences, live, pairs
from dfcompile.language_models.steps.choices import Latent, StepChoices
from dfcompile.language_models.steps.kernel import Kernel, KernelKind, Work
from dfcompile.records import replace


def _attended(group: Sequences) -> tuple[KernelKind, Work, str]:
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
    name: str, shape: tuple[int, int, int], read: int, written: int, form: NumberFormat, passed: int, batch: int = 1
) -> Kernel:
    """Return a kernel that reads, writes and passes the vector unit with so many elements of activations."""
    return Kernel(
        KernelKind.VECTOR, Work.VECTOR, name, *shape, batch,
        act_in_bytes=form.bytes_of(read),
        act_out_bytes=form.bytes_of(written),
        vector_elements=passed,
        rate=form.name,
    )  # fmt: skip


def _kv_store(heads: int, width: int, tokens: int, precision: Precision) -> Kernel:
    """Return the transfer of new keys and values to the cache."""
    return Kernel(
        KernelKind.KV_STORE, Work.TRANSFER, "kv_store", tokens, heads, width,
        kv_write_bytes=precision.kv.bytes_of(tokens * heads * width),
        rate=precision.activations.name,
    )  # fmt: skip


def attention_kernels(
    attention: Attention | LatentAttention, hidden: int, batch: Batch, precision: Precision, choices: StepChoices
) -> Iterator[Kernel]:
    """Yield projections, the cache's growth and the attention of each group of sequences."""
    tokens, queries = batch.tokens, attention.heads * attention.qk_dim
    if isinstance(attention, Attention):
        yield projection("qkv_proj", tokens, hidden, attention.projected, precision)
        yield _kv_store(attention.kv_heads, attention.qk_dim + attention.v_dim, tokens, precision)
    else:
        if attention.q_rank:
            yield projection("q_a_proj", tokens, hidden, attention.q_rank, precision)
            yield projection("q_b_proj", tokens, attention.q_rank, queries, precision)
        else:
            yield projection("q_proj", tokens, hidden, queries, precision)
        yield projection("kv_a_proj", tokens, hidden, attention.kv_elements, precision)
        yield _kv_store(1, attention.kv_elements, tokens, precision)
    for group in batch.groups:
        if isinstance(attention, Attention):
            yield from _grouped(attention, group, precision, choices)
        elif is_absorbed(group, choices):
            yield from _absorbed(attention, group, precision, choices)
        else:
            yield from _naive(attention, group, precision, choices)
    yield projection("o_proj", tokens, attention.heads * attention.v_dim, hidden, precision)


def _grouped(attention: Attention, group: Sequences, precision: Precision, choices: StepChoices) -> Iterator[Kernel]:
    """Yield one kernel whose scores stay on the chip: only queries, keys, values and results move; or several."""
    reach, activations, cached = attention.reach, precision.activations, precision.kv
    tokens, queries = live(reach, group.past, group.new), group.new * group.count * attention.heads
    seen = attention.heads * pairs(reach, group.past, group.new, causal=choices.causal) * group.count
    keys, values = (
        kv_elements_read(attention.kv_heads * width, tokens, group, choices)
        for width in (attention.qk_dim, attention.v_dim)
    )
    fused = Kernel(
        *_attended(group),
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
    yield from _unfused(first, last, attention.v_dim, seen, activations)


def _unfused(first: Kernel, last: Kernel, width: int, seen: int, activations: NumberFormat) -> Iterator[Kernel]:
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


def is_absorbed(group: Sequences, choices: StepChoices) -> bool:
    """Whether queries are brought to the latents, rather than latents to keys and values."""
    return group.decodes if choices.latent is Latent.AUTO else choices.latent is Latent.ABSORBED


def _naive(
    attention: LatentAttention, group: Sequences, precision: Precision, choices: StepChoices
) -> Iterator[Kernel]:
    """Keys and values of the whole context are made again of their latents."""
    tokens, heads, activations = live(attention.reach, group.past, group.new), attention.heads, precision.activations
    rows, queries = tokens * group.count, group.new * group.count * heads
    made = activations.bytes_of(rows * (attention.expanded + attention.rope))
    read = kv_elements_read(attention.kv_elements, tokens, group, choices)
    expanded = projection("kv_b_proj", rows, attention.kv_rank, attention.expanded, precision)
    yield replace(
        expanded,
        kind=KernelKind.MATRIX_WEIGHTS,
        act_in_bytes=0,
        act_out_bytes=made,
        kv_read_bytes=precision.kv.bytes_of(read),
        vector_elements=expanded.vector_elements + read * precision.widens(precision.kv),
    )
    seen = heads * pairs(attention.reach, group.past, group.new, causal=choices.causal) * group.count
    asked = activations.bytes_of(queries * attention.qk_dim)
    whole = Kernel(
        *_attended(group),
        group.new, attention.qk_dim, tokens, group.count * heads,
        macs=(attention.qk_dim + attention.v_dim) * seen,
        act_in_bytes=asked + made,
        act_out_bytes=activations.bytes_of(queries * attention.v_dim),
        vector_elements=seen,
        rate=precision.product(precision.kv),  # keys and values of latents, which are as wide as the cache
    )  # fmt: skip
    if choices.flash:
        yield whole
        return
    keys = activations.bytes_of(rows * (heads * attention.nope + attention.rope))
    first, last = replace(whole, act_in_bytes=asked + keys), replace(whole, act_in_bytes=made - keys, vector_elements=0)
    yield from _unfused(first, last, attention.v_dim, seen, activations)


def _absorbed(
    attention: LatentAttention, group: Sequences, precision: Precision, choices: StepChoices
) -> Iterator[Kernel]:
    """All heads share one key and value per token: its latent."""
    tokens, heads, rank = live(attention.reach, group.past, group.new), attention.heads, attention.kv_rank
    rows, activations, cached = group.new * group.count, precision.activations, precision.kv
    yield projection("q_absorb", rows, attention.nope, rank, precision, batch=heads)
    seen = heads * pairs(attention.reach, group.past, group.new, causal=choices.causal) * group.count
    read = kv_elements_read(attention.kv_elements, tokens, group, choices)
    whole = Kernel(
        *_attended(group),
        group.new * heads, attention.kv_elements, tokens, group.count,
        macs=(attention.kv_elements + rank) * seen,
        act_in_bytes=activations.bytes_of(rows * heads * attention.kv_elements),
        act_out_bytes=activations.bytes_of(rows * heads * rank),
        kv_read_bytes=cached.bytes_of(read),
        vector_elements=seen + read * precision.widens(cached),
        rate=precision.product(cached),
    )  # fmt: skip
    if choices.flash:
        yield whole
    else:
        values = cached.bytes_of(kv_elements_read(rank, tokens, group, choices))
        last = replace(whole, act_in_bytes=0, kv_read_bytes=values, vector_elements=0)
        yield from _unfused(whole, last, rank, seen, activations)
    yield projection("v_up", rows, rank, attention.v_dim, precision, batch=heads)
