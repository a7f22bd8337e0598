"""Kernels of multi-head latent attention, naive or absorbed [deepseek24]."""

from collections.abc import Iterator

from dfcompile.language_models.formats import NumberFormat, Precision
from dfcompile.language_models.model import LatentAttention
from dfcompile.language_models.steps.attention_kernels import (
    attention_name,
    attention_work,
    grouped_kind,
    kv_bytes_read,
    kv_elements_read,
    kv_store,
    product_kind,
    projection,
)
from dfcompile.language_models.steps.batch import Batch, Sequences, live, pairs
from dfcompile.language_models.steps.choices import Latent, StepChoices
from dfcompile.language_models.steps.kernel import Kernel, KernelKind, Work
from dfcompile.records import replace


def latent_kernels(
    attention: LatentAttention,
    hidden: int,
    part: str,
    count: int,
    batch: Batch,
    precision: Precision,
    choices: StepChoices,
) -> Iterator[Kernel]:
    """Yield projections, the cache's growth and the attention of each group of sequences."""
    tokens, queries = batch.tokens, attention.heads * attention.qk_dim
    if attention.q_rank:
        yield projection(part, count, "q_a_proj", tokens, hidden, attention.q_rank, precision)
        yield projection(part, count, "q_b_proj", tokens, attention.q_rank, queries, precision)
    else:
        yield projection(part, count, "q_proj", tokens, hidden, queries, precision)
    yield projection(part, count, "kv_a_proj", tokens, hidden, attention.kv_elements, precision)
    yield kv_store(part, count, 1, attention.kv_elements, tokens, precision)
    for group in batch.groups:
        if is_absorbed(group, choices):
            yield from _absorbed(attention, part, count, group, precision, choices)
        else:
            yield from _naive(attention, part, count, group, precision, choices)
    yield projection(part, count, "o_proj", tokens, attention.heads * attention.v_dim, hidden, precision)


def is_absorbed(group: Sequences, choices: StepChoices) -> bool:
    """Whether queries are brought to the latents, rather than latents to keys and values."""
    match choices.latent:
        case Latent.AUTO:
            return group.decodes
        case Latent.NAIVE:
            return False
        case Latent.ABSORBED:
            return True


def core_macs(attention: LatentAttention, group: Sequences, *, absorbed: bool, causal: bool = True) -> int:
    """Multiply-accumulates of attention and of what makes its operands, for all sequences of a group."""
    seen = pairs(attention.reach, group.past, group.new, causal=causal) * group.count
    if absorbed:
        moved = group.new * group.count * attention.heads * attention.kv_rank * (attention.nope + attention.v_dim)
        return moved + attention.heads * (2 * attention.kv_rank + attention.rope) * seen
    made = live(attention.reach, group.past, group.new) * group.count * attention.kv_rank * attention.expanded
    return made + attention.heads * (attention.qk_dim + attention.v_dim) * seen


def _naive(
    attention: LatentAttention, part: str, count: int, group: Sequences, precision: Precision, choices: StepChoices
) -> Iterator[Kernel]:
    """Keys and values of the whole context are made again of their latents."""
    tokens, heads, activations = live(attention.reach, group.past, group.new), attention.heads, precision.activations
    rows, queries = tokens * group.count, group.new * group.count * heads
    made = activations.bytes_of(rows * (attention.expanded + attention.rope))
    yield Kernel(
        KernelKind.MATRIX_WEIGHTS, Work.GEMM, "kv_b_proj", part, count, rows, attention.kv_rank, attention.expanded,
        macs=rows * attention.kv_rank * attention.expanded,
        weight_bytes=precision.attention.bytes_of(attention.kv_rank * attention.expanded),
        act_out_bytes=made,
        kv_read_bytes=kv_bytes_read(attention.kv_elements, tokens, group, precision, choices),
        vector_elements=attention.kv_rank * attention.expanded * precision.widens(precision.attention)
        + kv_elements_read(attention.kv_elements, tokens, group, choices) * precision.widens(precision.kv),
        rate=precision.product(precision.attention),
    )  # fmt: skip
    seen = pairs(attention.reach, group.past, group.new, causal=choices.causal) * group.count
    keys = activations.bytes_of(rows * (heads * attention.nope + attention.rope))
    whole = Kernel(
        grouped_kind(group), attention_work(group), attention_name(group), part, count,
        group.new, attention.qk_dim, tokens, group.count * heads,
        macs=heads * (attention.qk_dim + attention.v_dim) * seen,
        act_in_bytes=activations.bytes_of(queries * attention.qk_dim) + made,
        act_out_bytes=activations.bytes_of(queries * attention.v_dim),
        vector_elements=heads * seen,
        rate=precision.product(precision.kv),  # keys and values of latents, which are as wide as the cache
    )  # fmt: skip
    if choices.flash:
        yield whole
        return
    asked = replace(whole, act_in_bytes=activations.bytes_of(queries * attention.qk_dim) + keys)
    yield from _unfused(asked, attention.v_dim, made - keys, 0, heads * seen, activations)


def _unfused(
    first: Kernel, width: int, values_bytes: int, cached_bytes: int, seen: int, activations: NumberFormat
) -> Iterator[Kernel]:
    """Yield the product of scores, their softmax, and that of values, where scores are written and read twice.

    Args:
        first: the fused kernel, with what the product of scores reads.
        width: elements of a value.
        values_bytes: of values that are activations.
        cached_bytes: of values that are read of the cache.
        seen: pairs of queries of all heads and keys.
        activations: format of scores.
    """
    name, scores = first.name, activations.bytes_of(first.m * first.n * first.batch)
    depth = first.macs // seen - width
    yield replace(
        first, name=f"{name}_scores", macs=depth * seen, act_out_bytes=scores,
        vector_elements=first.vector_elements - seen,
    )  # fmt: skip
    yield Kernel(
        KernelKind.VECTOR, Work.VECTOR, f"{name}_softmax", first.part, first.count, first.m, 1, first.n, first.batch,
        act_in_bytes=scores, act_out_bytes=scores, vector_elements=seen, rate=activations.name,
    )  # fmt: skip
    yield replace(
        first, name=f"{name}_values", k=first.n, n=width, macs=width * seen, act_in_bytes=scores + values_bytes,
        kv_read_bytes=cached_bytes, vector_elements=0,
    )  # fmt: skip


def _absorbed(
    attention: LatentAttention, part: str, count: int, group: Sequences, precision: Precision, choices: StepChoices
) -> Iterator[Kernel]:
    """All heads share one key and value per token: its latent."""
    tokens, heads, rank = live(attention.reach, group.past, group.new), attention.heads, attention.kv_rank
    rows, activations = group.new * group.count, precision.activations

    def per_head(name: str, k: int, n: int) -> Kernel:
        return Kernel(
            product_kind(rows), Work.GEMM, name, part, count, rows, k, n, heads,
            macs=rows * heads * k * n,
            weight_bytes=precision.attention.bytes_of(heads * k * n),
            act_in_bytes=activations.bytes_of(rows * heads * k),
            act_out_bytes=activations.bytes_of(rows * heads * n),
            vector_elements=heads * k * n * precision.widens(precision.attention),
            rate=precision.product(precision.attention),
        )  # fmt: skip

    yield per_head("q_absorb", attention.nope, rank)
    seen = pairs(attention.reach, group.past, group.new, causal=choices.causal) * group.count
    whole = Kernel(
        grouped_kind(group), attention_work(group), attention_name(group), part, count,
        group.new * heads, attention.kv_elements, tokens, group.count,
        macs=heads * (attention.kv_elements + rank) * seen,
        act_in_bytes=activations.bytes_of(rows * heads * attention.kv_elements),
        act_out_bytes=activations.bytes_of(rows * heads * rank),
        kv_read_bytes=kv_bytes_read(attention.kv_elements, tokens, group, precision, choices),
        vector_elements=heads * seen
        + kv_elements_read(attention.kv_elements, tokens, group, choices) * precision.widens(precision.kv),
        rate=precision.product(precision.kv),
    )  # fmt: skip
    if choices.flash:
        yield whole
    else:
        values = kv_bytes_read(rank, tokens, group, precision, choices)
        yield from _unfused(whole, rank, 0, values, heads * seen, activations)
    yield per_head("v_up", rank, attention.v_dim)
