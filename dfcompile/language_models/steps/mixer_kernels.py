"""Kernels of recurrent mixers: matrices, the short convolution, and the update and reading of states.

A token that is made after others updates the state element by element. A prompt is cut into chunks: within a chunk,
keys are multiplied with queries and the result with values, as attention does, and the state is updated and read once
per chunk by products [dao24] [yang24]. States and the convolution's last tokens are read and written once per step.
"""

from collections.abc import Iterator

from dfcompile.language_models.formats import Precision
from dfcompile.language_models.mixer import Mixer, Rule
from dfcompile.language_models.steps.attention_kernels import projection
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import Kernel, KernelKind, Role, StepChoices, Work


def held_states(group: Sequences) -> int:
    """States that the sequences of a step leave: one each, and one per drafted token, which may be taken back."""
    return group.count * (1 + group.drafted)


def mixer_kernels(
    mixer: Mixer, hidden: int, batch: Batch, precision: Precision, choices: StepChoices
) -> Iterator[Kernel]:
    """Yield the matrices, the convolution and the states of each group of sequences."""
    tokens = batch.tokens
    yield projection("mixer_in", tokens, hidden, mixer.opening, precision, role=Role.OPENING)
    if mixer.taps:
        yield _convolution(mixer, batch, precision)
    if mixer.rank:
        # Reads what the convolution wrote, as the scan does.
        yield projection("x_proj", tokens, mixer.inner, mixer.stepped, precision, role=Role.OPENING)
        yield projection("dt_proj", tokens, mixer.rank, mixer.inner, precision)
    if mixer.blocks:
        wide = mixer.blocks * mixer.value_dim
        yield projection("head_gates", tokens, mixer.value_dim, wide, precision, batch=mixer.heads, role=Role.OPENING)
    if mixer.low_rank:
        yield projection("decay_proj", tokens, mixer.low_rank, mixer.decays, precision)
        yield projection("gate_proj", tokens, mixer.low_rank, mixer.inner, precision)
    if mixer.key_dim:
        for group in batch.groups:
            yield _scan(mixer, group, precision, choices)
    yield projection("mixer_out", tokens, mixer.inner, hidden, precision)


def _convolution(mixer: Mixer, batch: Batch, precision: Precision) -> Kernel:
    """Return the convolution of every channel with its taps; without states, gates are multiplied there."""
    tokens, channels, vectors, form = batch.tokens, mixer.channels, precision.vectors, precision.activations
    kept = vectors.bytes_of(mixer.convolved_elements)
    read = channels if mixer.key_dim else mixer.opening
    return Kernel(
        KernelKind.VECTOR, Work.RECURRENT, "short_convolution", tokens, mixer.taps, channels,
        macs=tokens * channels * mixer.taps,
        weight_bytes=vectors.bytes_of(channels * (mixer.taps + mixer.convolution_bias)),
        act_in_bytes=form.bytes_of(tokens * read),
        act_out_bytes=form.bytes_of(tokens * channels),
        kv_read_bytes=kept * sum(group.count for group in batch.groups if group.past),
        kv_write_bytes=kept * sum(map(held_states, batch.groups)),
        vector_elements=tokens * read,
        rate=form.name,
    )  # fmt: skip


def _scan(mixer: Mixer, group: Sequences, precision: Precision, choices: StepChoices) -> Kernel:
    """Return the update and the reading of all states of a group of sequences.

    The elements that pass the vector unit are decays, of every state element of a token, or, in a chunk, of every pair
    of tokens of a head and of every state once; and results, with the gate that they pass.
    """
    tokens, states, form = group.new * group.count, mixer.state_elements, precision.activations
    state_bytes = (mixer.state or precision.vectors).bytes_of(states)
    taken = mixer.opening + (mixer.inner + mixer.keyed if mixer.rank else 0) + mixer.blocks * mixer.inner
    if mixer.low_rank:
        taken += mixer.decays + mixer.inner - 2 * mixer.low_rank
    if group.decodes or not mixer.chunk:
        name, kind, work = "scan_decode" if group.decodes else "scan_prefill", KernelKind.VECTOR, Work.RECURRENT
        shape, macs = (1, mixer.key_dim, mixer.value_dim, tokens * mixer.heads), tokens * states * _products(mixer.rule)
        again = max(tokens * states, macs - tokens * states)
        passed = (
            tokens * states * (2 if mixer.rule is Rule.SELECTIVE else 1)
        )  # its decays are exponentials of their own
    else:
        name, kind, work = "scan_prefill", KernelKind.MATRIX_GROUPED, Work.CHUNKS
        chunks, seen = -(-group.new // mixer.chunk), pairs_in_chunks(group.new, mixer.chunk, causal=choices.causal)
        rows = min(group.new, mixer.chunk)
        shape = rows, mixer.key_dim, rows, chunks * group.count * mixer.heads
        macs = chunked_macs(mixer, group.new, causal=choices.causal) * group.count
        again = macs - tokens * states - mixer.inner * seen * group.count
        passed = group.count * (mixer.heads * seen + chunks * states)
    m, k, n, batch = shape
    return Kernel(
        kind, work, name, m, k, n, batch,
        macs=macs,
        again_macs=again,
        act_in_bytes=form.bytes_of(tokens * taken),
        act_out_bytes=form.bytes_of(tokens * mixer.inner),
        kv_read_bytes=state_bytes * group.count * bool(group.past),
        kv_write_bytes=state_bytes * held_states(group),
        vector_elements=passed + tokens * mixer.inner * (2 if mixer.gates or mixer.low_rank else 1),
        rate=form.name,
    )  # fmt: skip


def _products(rule: Rule) -> int:
    """Multiply-accumulates of a token with an element of the state: its update, its reading, and what it answers."""
    return {Rule.DELTA: 3, Rule.LRU: 1}.get(rule, 2)


def pairs_in_chunks(tokens: int, chunk: int, *, causal: bool) -> int:
    """Pairs of tokens of the same chunk, of which the second is not after the first where causal.

    >>> pairs_in_chunks(5, 4, causal=True), pairs_in_chunks(5, 4, causal=False)
    (11, 17)
    """
    whole, rest = divmod(tokens, chunk)
    return sum(
        times * (extent * (extent + 1) // 2 if causal else extent**2) for times, extent in ((whole, chunk), (1, rest))
    )


def chunked_macs(mixer: Mixer, tokens: int, *, causal: bool) -> int:
    """Multiply-accumulates of a prompt in chunks, of all heads of a sequence.

    With ``p`` pairs of tokens in chunks, keys of ``K`` and values of ``V`` elements: Mamba-2 and lightning attention
    take ``p K`` for each group of keys, and for each head ``p V`` and, of each token, ``2 K V`` [dao24, section 6].
    The gated delta rule takes, for each head, ``p (2 K + V)``, the solution of a triangular system for keys and values,
    ``(K + V)`` for each pair of different tokens, and of each token ``3 K V`` [yang24, section 3].
    """
    seen, key, value = pairs_in_chunks(tokens, mixer.chunk, causal=causal), mixer.key_dim, mixer.value_dim
    with_states = tokens * mixer.state_elements * _products(mixer.rule)
    if mixer.rule is Rule.DELTA:
        solved = pairs_in_chunks(tokens, mixer.chunk, causal=True) - tokens
        return mixer.heads * (seen * (2 * key + value) + solved * (key + value)) + with_states
    return seen * (mixer.groups * key + mixer.inner) + with_states
