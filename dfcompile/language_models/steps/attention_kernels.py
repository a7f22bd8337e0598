"""Kernels of attention: with heads of keys and values of their own (MHA, GQA, MQA), or latent [deepseek24]."""

from collections.abc import Iterator

from msgspec import Struct

from dfcompile.language_models.formats import NumberFormat, Precision
from dfcompile.language_models.mixer import Indexer
from dfcompile.language_models.model import Attention, LatentAttention, Mask, Reach
from dfcompile.language_models.steps.batch import Batch, Sequences, live, pairs
from dfcompile.language_models.steps.kernel import Kernel, KernelKind, Latent, Role, StepChoices, Work
from dfcompile.records import replace


def kv_elements_read(elements: int, live_tokens: int, group: Sequences, choices: StepChoices) -> int:
    """Elements of the cache that a group reads, ``elements`` of each token; a prefix that all share is read once."""
    shared = min(choices.shared_prefix, live_tokens)
    return elements * ((live_tokens - shared) * group.count + shared)


def projection(
    name: str,
    rows: int,
    k: int,
    n: int,
    precision: Precision,
    which: str = "attention",
    batch: int = 1,
    role: Role = Role.PLAIN,
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
        stored=weights.stored_name,
        role=role,
    )  # fmt: skip


def vector_kernel(
    name: str,
    shape: tuple[int, int, int],
    read: int,
    written: int,
    form: NumberFormat,
    passed: int,
    batch: int = 1,
    launches: int = 1,
) -> Kernel:
    """Return a kernel that reads, writes and passes the vector unit with so many elements of activations."""
    return Kernel(
        KernelKind.VECTOR, Work.VECTOR, name, *shape, batch,
        act_in_bytes=form.bytes_of(read),
        act_out_bytes=form.bytes_of(written),
        vector_elements=passed,
        rate=form.name,
        launches=launches,
    )  # fmt: skip


def _kv_store(heads: int, width: int, tokens: int, precision: Precision) -> Kernel:
    """Return the transfer of new keys and values to the cache."""
    return Kernel(
        KernelKind.KV_STORE, Work.TRANSFER, "kv_store", tokens, heads, width,
        kv_write_bytes=precision.kv.bytes_of(tokens * heads * width),
        rate=precision.activations.name,
    )  # fmt: skip


class _Reads(Struct, frozen=True):
    """What a kernel of attention reads: bytes of activations and of the cache, and elements that are widened."""

    act_bytes: int = 0
    kv_bytes: int = 0
    widened: int = 0


class _Group(Struct, frozen=True):
    """A group of sequences, ``heads`` queries per token, and what they are counted with."""

    sequences: Sequences
    attention: Attention | LatentAttention
    precision: Precision
    choices: StepChoices
    chosen: int = 0  # tokens that a query attends to at most; 0: all

    @property
    def tokens(self) -> int:
        """Tokens of a sequence whose keys and values are seen: chosen ones may differ from query to query."""
        tokens = live(self.attention.reach, self.sequences.past, self.sequences.new)
        return min(tokens, self.chosen * self.sequences.new) if self.chosen else tokens

    @property
    def keys(self) -> int:
        """Keys of the product of a query."""
        return min(self.tokens, self.chosen) if self.chosen else self.tokens

    @property
    def seen(self) -> int:
        """Pairs of a query and a key that it sees, of one head and all sequences."""
        past, new, count = self.sequences.past, self.sequences.new, self.sequences.count
        if self.chosen and not self.choices.causal:
            return new * self.keys * count
        # As many keys as are chosen, or all if there are fewer: so many a window has as well.
        reach = Reach(Mask.WINDOW, self.chosen) if self.chosen else self.attention.reach
        return pairs(reach, past, new, causal=self.choices.causal) * count

    @property
    def queries(self) -> int:
        """Queries of all heads and sequences."""
        return self.sequences.new * self.sequences.count * self.attention.heads

    def read(self, elements: int) -> int:
        """Elements of the cache that are read, so many of each token; chosen ones are those of each sequence."""
        if self.chosen:
            return elements * self.tokens * self.sequences.count
        return kv_elements_read(elements, self.tokens, self.sequences, self.choices)

    def kernels(
        self, products: int, key: int, value: int, whole: _Reads, of_scores: _Reads, of_values: _Reads
    ) -> Iterator[Kernel]:
        """Yield one kernel whose scores stay on the chip; or products of scores and values, and the softmax between.

        Where scores are written, they are read twice.

        Args:
            products: of each sequence, among which its query heads are shared.
            key: elements of a key.
            value: elements of a value.
            whole: what the one kernel reads.
            of_scores: what the product of scores reads.
            of_values: what the product of values reads beside scores.
        """
        group, activations, form = self.sequences, self.precision.activations, "prefill"
        is_latent = isinstance(self.attention, LatentAttention)
        kind, work = KernelKind.MATRIX_GROUPED, Work.PREFILL_LATENT if is_latent else Work.PREFILL_ATTENTION
        if group.new == 1 + group.drafted:
            work = Work.DECODE_LATENT if is_latent else Work.DECODE_ATTENTION
            kind, form = KernelKind.VECTOR_GROUPED, "decode"
        heads, name = self.attention.heads, f"attention_{form}"
        seen = heads * self.seen
        fused = Kernel(
            kind, work, name, group.new * (heads // products), key, self.keys, group.count * products,
            macs=(key + value) * seen,
            again_macs=key * seen,
            act_in_bytes=whole.act_bytes,
            act_out_bytes=activations.bytes_of(self.queries * value),
            kv_read_bytes=whole.kv_bytes,
            vector_elements=seen + whole.widened,
            rate=self.precision.product(self.precision.kv),
            stored=self.precision.kv.stored_name,
            role=Role.ATTENTION,
        )  # fmt: skip
        if self.choices.flash:
            yield fused
            return
        elements = fused.m * fused.n * fused.batch
        scores = activations.bytes_of(elements)
        yield replace(
            fused, name=f"{name}_scores", macs=key * seen, again_macs=0,
            act_in_bytes=of_scores.act_bytes, act_out_bytes=scores,
            kv_read_bytes=of_scores.kv_bytes, vector_elements=of_scores.widened, role=Role.SCORES,
        )  # fmt: skip
        shape = fused.m, 1, fused.n
        softmax = vector_kernel(f"{name}_softmax", shape, elements, elements, activations, seen, fused.batch)
        yield replace(softmax, role=Role.SOFTMAX)
        yield replace(
            fused, name=f"{name}_values", k=fused.n, n=value, macs=value * seen, again_macs=0,
            act_in_bytes=scores + of_values.act_bytes, kv_read_bytes=of_values.kv_bytes,
            vector_elements=of_values.widened, role=Role.VALUES,
        )  # fmt: skip


def attention_kernels(
    attention: Attention | LatentAttention, hidden: int, batch: Batch, precision: Precision, choices: StepChoices
) -> Iterator[Kernel]:
    """Yield projections, the cache's growth and the attention of each group of sequences."""
    tokens, queries = batch.tokens, attention.heads * attention.qk_dim
    if isinstance(attention, Attention):
        yield from _opening(attention, hidden, batch, precision)
    else:
        if attention.q_rank:
            yield projection("q_a_proj", tokens, hidden, attention.q_rank, precision, role=Role.OPENING)
            yield projection("q_b_proj", tokens, attention.q_rank, queries, precision)
        else:
            yield projection("q_proj", tokens, hidden, queries, precision, role=Role.OPENING)
        yield projection("kv_a_proj", tokens, hidden, attention.latent, precision, role=Role.OPENING)
        if attention.indexer is not None:
            yield from _index_products(attention, attention.indexer, hidden, tokens, precision)
        yield _kv_store(1, attention.kv_elements, tokens, precision)
        if attention.gate_dim:
            gates = attention.heads * attention.gate_dim
            yield projection("gate_proj", tokens, hidden, gates, precision, role=Role.OPENING)
    for sequences in batch.groups:
        group = _Group(sequences, attention, precision, choices)
        if isinstance(attention, Attention):
            yield from _grouped(attention, group)
        else:
            if attention.indexer is not None:
                yield from _index(attention, attention.indexer, group)
            absorbs = is_absorbed(sequences, choices, attention.chosen)
            yield from (_absorbed if absorbs else _naive)(attention, group)
    yield projection("o_proj", tokens, attention.heads * attention.v_dim, hidden, precision)


def _opening(attention: Attention, hidden: int, batch: Batch, precision: Precision) -> Iterator[Kernel]:
    """Yield the products that make queries, keys and values: of an encoder's tokens where a sequence begins."""
    role, tokens, width = Role.OPENING, batch.tokens, attention.qk_dim + attention.v_dim
    if attention.reach.mask is not Mask.ENCODER:
        name = "qkv_proj" if attention.kv_products else "q_proj"
        yield projection(name, tokens, hidden, attention.projected, precision, role=role)
        if attention.kv_products:
            yield _kv_store(attention.kv_heads, width, tokens, precision)
        return
    yield projection("q_proj", tokens, hidden, attention.projected - attention.kv_elements, precision, role=role)
    if taken := batch.begun * attention.reach.extent:
        yield projection("kv_proj", taken, attention.source or hidden, attention.kv_elements, precision)
        yield _kv_store(attention.kv_heads, width, taken, precision)


def is_absorbed(group: Sequences, choices: StepChoices, chosen: int = 0) -> bool:
    """Whether queries are brought to the latents, rather than latents to keys and values.

    So are prompts where a query attends to ``chosen`` tokens of more.
    """
    if choices.latent is not Latent.AUTO:
        return choices.latent is Latent.ABSORBED
    return group.decodes or 0 < chosen < group.context


def _index_products(
    attention: LatentAttention, indexer: Indexer, hidden: int, tokens: int, precision: Precision
) -> Iterator[Kernel]:
    """Yield the products that make queries, keys and weights of heads of an indexer."""
    yield projection("index_q", tokens, attention.q_rank, indexer.heads * indexer.dim, precision)
    yield projection("index_k", tokens, hidden, indexer.dim, precision, role=Role.OPENING)
    yield projection("index_weights", tokens, hidden, indexer.heads, precision, "vectors", role=Role.OPENING)


def _index(attention: LatentAttention, indexer: Indexer, group: _Group) -> Iterator[Kernel]:
    """Yield the scores of all tokens that a query may attend to, weighed over heads, and the choice among them."""
    sequences, precision, tokens = group.sequences, group.precision, group.tokens
    new, count, seen, heads = sequences.new, sequences.count, group.seen, indexer.heads
    read, decodes = group.read(indexer.dim), sequences.decodes
    yield Kernel(
        KernelKind.VECTOR_GROUPED if decodes else KernelKind.MATRIX_GROUPED,
        Work.DECODE_LATENT if decodes else Work.PREFILL_LATENT,
        "index_scores", new * heads, indexer.dim, tokens, count,
        macs=(indexer.dim + 1) * heads * seen,  # one more of each head to weigh it
        act_in_bytes=precision.activations.bytes_of(new * count * heads * (indexer.dim + 1)),
        act_out_bytes=precision.activations.bytes_of(seen),
        kv_read_bytes=precision.kv.bytes_of(read),
        vector_elements=heads * seen + read * precision.widens(precision.kv),
        rate=precision.product(precision.kv),
        stored=precision.kv.stored_name,
    )  # fmt: skip
    chosen = new * min(attention.chosen, tokens) * count
    yield vector_kernel("index_choice", (new, 1, tokens), seen, chosen, precision.activations, seen, count)


def _grouped(attention: Attention, group: _Group) -> Iterator[Kernel]:
    """Query heads share heads of keys and values; only queries, keys, values and results move."""
    cached, width = group.precision.kv, attention.qk_dim
    asked, widens = group.precision.activations.bytes_of(group.queries * width), group.precision.widens(cached)
    keys, values = (group.read(attention.kv_heads * one) for one in (width, attention.v_dim))
    parts = (asked, keys + values), (asked, keys), (0, values)
    reads = (_Reads(act_bytes, cached.bytes_of(elements), elements * widens) for act_bytes, elements in parts)
    yield from group.kernels(attention.kv_heads, width, attention.v_dim, *reads)


def _naive(attention: LatentAttention, group: _Group) -> Iterator[Kernel]:
    """Keys and values of the whole context, as wide as the cache, are made again of their latents."""
    precision, heads = group.precision, attention.heads
    rows, bytes_of = group.tokens * group.sequences.count, precision.activations.bytes_of
    made = bytes_of(rows * (attention.expanded + attention.rope))
    read = group.read(attention.latent)
    expanded = projection("kv_b_proj", rows, attention.kv_rank, attention.expanded, precision)
    yield replace(
        expanded,
        kind=KernelKind.MATRIX_WEIGHTS,
        act_in_bytes=0,
        act_out_bytes=made,
        kv_read_bytes=precision.kv.bytes_of(read),
        vector_elements=expanded.vector_elements + read * precision.widens(precision.kv),
    )
    asked = bytes_of(group.queries * attention.qk_dim)
    keys = bytes_of(rows * (heads * attention.nope + attention.rope))
    reads = _Reads(asked + made), _Reads(asked + keys), _Reads(made - keys)
    yield from group.kernels(heads, attention.qk_dim, attention.v_dim, *reads)


def _absorbed(attention: LatentAttention, group: _Group) -> Iterator[Kernel]:
    """All heads share one key and value per token: its latent."""
    group = replace(group, chosen=attention.chosen)
    precision, heads, rank = group.precision, attention.heads, attention.kv_rank
    rows, cached, width = group.sequences.new * group.sequences.count, precision.kv, attention.latent
    yield projection("q_absorb", rows, attention.nope, rank, precision, batch=heads)
    read = group.read(width)
    asked = precision.activations.bytes_of(group.queries * width)
    whole = _Reads(asked, cached.bytes_of(read), read * precision.widens(cached))
    yield from group.kernels(1, width, rank, whole, whole, _Reads(0, cached.bytes_of(group.read(rank))))
    yield projection("v_up", rows, rank, attention.v_dim, precision, batch=heads)
