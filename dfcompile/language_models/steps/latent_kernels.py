"""Kernels of multi-head latent attention, naive or absorbed [deepseek24]."""

from collections.abc import Iterator

from dfcompile.language_models.formats import Precision
from dfcompile.language_models.model import LatentAttention
from dfcompile.language_models.steps.attention_kernels import (
    attended,
    kv_elements_read,
    kv_store,
    projection,
    unfused,
)
from dfcompile.language_models.steps.batch import Batch, Sequences, live, pairs
from dfcompile.language_models.steps.choices import Latent, StepChoices
from dfcompile.language_models.steps.kernel import Kernel, KernelKind
from dfcompile.records import replace


def latent_kernels(
    attention: LatentAttention, hidden: int, batch: Batch, precision: Precision, choices: StepChoices
) -> Iterator[Kernel]:
    """Yield projections, the cache's growth and the attention of each group of sequences."""
    tokens, queries = batch.tokens, attention.heads * attention.qk_dim
    if attention.q_rank:
        yield projection("q_a_proj", tokens, hidden, attention.q_rank, precision)
        yield projection("q_b_proj", tokens, attention.q_rank, queries, precision)
    else:
        yield projection("q_proj", tokens, hidden, queries, precision)
    yield projection("kv_a_proj", tokens, hidden, attention.kv_elements, precision)
    yield kv_store(1, attention.kv_elements, tokens, precision)
    for group in batch.groups:
        made = _absorbed if is_absorbed(group, choices) else _naive
        yield from made(attention, group, precision, choices)
    yield projection("o_proj", tokens, attention.heads * attention.v_dim, hidden, precision)


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
        *attended(group),
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
    yield from unfused(first, last, attention.v_dim, seen, activations)


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
        *attended(group),
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
        yield from unfused(whole, last, rank, seen, activations)
    yield projection("v_up", rows, rank, attention.v_dim, precision, batch=heads)
