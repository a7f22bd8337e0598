"""Kernels of attention with heads of keys and values of their own: MHA, GQA, MQA."""

from collections.abc import Iterator

from dfcompile.language_models.formats import Precision
from dfcompile.language_models.model import Attention
from dfcompile.language_models.steps.batch import Batch, Sequences, live, pairs
from dfcompile.language_models.steps.choices import StepChoices
from dfcompile.language_models.steps.kernel import Kernel, KernelKind, Work


def product_kind(rows: int) -> KernelKind:
    """Kind of a product with weights."""
    return KernelKind.VECTOR_WEIGHTS if rows == 1 else KernelKind.MATRIX_WEIGHTS


def grouped_kind(group: Sequences) -> KernelKind:
    """Kind of a product with the cache, by what one sequence brings."""
    return KernelKind.VECTOR_GROUPED if group.new == 1 else KernelKind.MATRIX_GROUPED


def attention_work(group: Sequences) -> Work:
    """Which efficiency an attention has."""
    return Work.DECODE_ATTENTION if group.new == 1 else Work.PREFILL_ATTENTION


def attention_name(group: Sequences) -> str:
    """Name of an attention kernel."""
    return "attention_decode" if group.new == 1 else "attention_prefill"


def kv_bytes_read(elements: int, live_tokens: int, group: Sequences, precision: Precision, choices: StepChoices) -> int:
    """Bytes of the cache that a group reads; a prefix that all share is read once."""
    return precision.kv.bytes_of(kv_elements_read(elements, live_tokens, group, choices))


def kv_elements_read(elements: int, live_tokens: int, group: Sequences, choices: StepChoices) -> int:
    """Elements of the cache that a group reads, ``elements`` of each token."""
    shared = min(choices.shared_prefix, live_tokens)
    return elements * ((live_tokens - shared) * group.count + shared)


def projection(
    part: str, count: int, name: str, rows: int, k: int, n: int, precision: Precision, which: str = "attention"
) -> Kernel:
    """Return the product of ``rows`` tokens with a matrix of weights of some class."""
    weights, activations = getattr(precision, which), precision.activations
    return Kernel(
        product_kind(rows),
        Work.GEMM,
        name,
        part,
        count,
        rows,
        k,
        n,
        macs=rows * k * n,
        weight_bytes=weights.bytes_of(k * n),
        act_in_bytes=activations.bytes_of(rows * k),
        act_out_bytes=activations.bytes_of(rows * n),
        vector_elements=k * n * precision.widens(weights),
        rate=precision.product(weights),
    )


def kv_store(part: str, count: int, heads: int, width: int, tokens: int, precision: Precision) -> Kernel:
    """Return the transfer of new keys and values to the cache."""
    return Kernel(
        KernelKind.KV_STORE,
        Work.TRANSFER,
        "kv_store",
        part,
        count,
        tokens,
        heads,
        width,
        kv_write_bytes=precision.kv.bytes_of(tokens * heads * width),
        rate=precision.activations.name,
    )


def attention_kernels(
    attention: Attention, hidden: int, part: str, count: int, batch: Batch, precision: Precision, choices: StepChoices
) -> Iterator[Kernel]:
    """Yield projections, the cache's growth and the attention of each group of sequences."""
    tokens = batch.tokens
    yield projection(part, count, "qkv_proj", tokens, hidden, attention.projected, precision)
    width = attention.qk_dim + attention.v_dim
    yield kv_store(part, count, attention.kv_heads, width, tokens, precision)
    for group in batch.groups:
        if choices.flash:
            yield _fused(attention, part, count, group, precision, choices)
        else:
            yield from _unfused(attention, part, count, group, precision, choices)
    yield projection(part, count, "o_proj", tokens, attention.heads * attention.v_dim, hidden, precision)


def _fused(
    attention: Attention, part: str, count: int, group: Sequences, precision: Precision, choices: StepChoices
) -> Kernel:
    """Scores stay on the chip: only queries, keys, values and results move."""
    reach, queries = attention.reach, group.new * group.count
    tokens = live(reach, group.past, group.new)
    seen = pairs(reach, group.past, group.new, causal=choices.causal) * group.count
    return Kernel(
        grouped_kind(group),
        attention_work(group),
        attention_name(group),
        part,
        count,
        group.new * attention.grouped,
        attention.qk_dim,
        tokens,
        group.count * attention.kv_heads,
        macs=attention.heads * (attention.qk_dim + attention.v_dim) * seen,
        act_in_bytes=precision.activations.bytes_of(queries * attention.heads * attention.qk_dim),
        act_out_bytes=precision.activations.bytes_of(queries * attention.heads * attention.v_dim),
        kv_read_bytes=kv_bytes_read(attention.kv_elements, tokens, group, precision, choices),
        vector_elements=attention.heads * seen
        + kv_elements_read(attention.kv_elements, tokens, group, choices) * precision.widens(precision.kv),
        rate=precision.product(precision.kv),
    )


def _unfused(
    attention: Attention, part: str, count: int, group: Sequences, precision: Precision, choices: StepChoices
) -> Iterator[Kernel]:
    """Every score is written by one kernel and read by the next, twice."""
    reach, rows = attention.reach, group.new * attention.grouped
    batch = group.count * attention.kv_heads
    tokens = live(reach, group.past, group.new)
    seen = pairs(reach, group.past, group.new, causal=choices.causal) * group.count
    scores = precision.activations.bytes_of(attention.heads * group.new * tokens * group.count)
    name, work, rate = attention_name(group), attention_work(group), precision.product(precision.kv)
    queries = group.new * group.count * attention.heads
    for suffix, k, n, moved in (
        ("scores", attention.qk_dim, tokens, attention.qk_dim),
        ("values", tokens, attention.v_dim, attention.v_dim),
    ):
        is_first = suffix == "scores"
        if not is_first:
            yield Kernel(
                KernelKind.VECTOR, Work.VECTOR, f"{name}_softmax", part, count, rows, 1, tokens, batch,
                act_in_bytes=scores, act_out_bytes=scores, vector_elements=attention.heads * seen,
                rate=precision.activations.name,
            )  # fmt: skip
        outer = precision.activations.bytes_of(queries * moved)
        yield Kernel(
            grouped_kind(group), work, f"{name}_{suffix}", part, count, rows, k, n, batch,
            macs=attention.heads * moved * seen,
            act_in_bytes=outer if is_first else scores,
            act_out_bytes=scores if is_first else outer,
            kv_read_bytes=kv_bytes_read(attention.kv_heads * moved, tokens, group, precision, choices),
            vector_elements=kv_elements_read(attention.kv_heads * moved, tokens, group, choices)
            * precision.widens(precision.kv),
            rate=rate,
        )  # fmt: skip
