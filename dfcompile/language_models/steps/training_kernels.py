"""Kernels of a layer in training: those of its forward pass, and of each of them what derives by its operands.

A product ``Y = A B`` has two: the gradient by A reads that of Y and B, the gradient by B reads A and that of Y. Where B
are weights, its gradient is added to the one of earlier micro-batches. Attention whose scores stay on the chip makes
them again [dao22]: five products of queries, keys and values for the two of the forward pass. A recurrent mixer makes
its states and products within chunks again. Every other kernel reads its operands and the gradients of its results, and
writes those of its operands.
"""

import math
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from dfcompile.language_models.formats import FORMATS, NumberFormat, Precision
from dfcompile.language_models.model import Layer, Model
from dfcompile.language_models.steps.attention_kernels import vector_kernel
from dfcompile.language_models.steps.batch import Batch
from dfcompile.language_models.steps.kernel import Kernel, KernelKind, Latent, Role, StepChoices, Work
from dfcompile.language_models.steps.step import ExpertShare, between_products, ends_kernels, layer_kernels
from dfcompile.records import replace

GRADIENTS = FORMATS["fp32"]  # of weights: sums over micro-batches
_ATTENTION = (Work.PREFILL_ATTENTION, Work.PREFILL_LATENT)
_PRODUCTS = (Work.GEMM, Work.EXPERTS)
_MIXING = (Work.CHUNKS, Work.RECURRENT)
_ATTENDING = (Role.ATTENTION, Role.SCORES, Role.SOFTMAX, Role.DROPOUT, Role.VALUES)
# Read what the norm before attention or MLP writes: one tensor, however many of them read it.
_OPENING = (Role.OPENING, Role.WIDENING)
_WIDENING = (Role.WIDENING, Role.EXPERT_WIDENING)


class Recompute(StrEnum):
    """What the backward pass computes again instead of keeping it."""

    NONE = "none"
    ATTENTION = "attention"  # scores and softmax: "selective" [korthikanti22]
    LAYERS = "layers"  # all of a layer but its input: "full"


class TrainingChoices(Struct, frozen=True):
    """How a training step is run.

    Attributes:
        recompute: what the backward pass computes again.
        dropout: whether scores and both branches of a layer are dropped out, with masks of a byte per element.
        splits_norms: whether chips of a tensor group share the tokens of norms and residuals [korthikanti22].
        interleave: runs of layers that each stage has [narayanan21]; 1: one.
        shards_optimiser: whether replicas share the states of the optimiser [rajbhandari20].
    """

    recompute: Recompute = Recompute.NONE
    dropout: bool = False
    splits_norms: bool = False
    interleave: int = 1
    shards_optimiser: bool = False


class Pass(Struct, frozen=True):
    """Kernels of one layer, or of an end of the model, for a micro-batch.

    Attributes:
        forward: of the forward pass.
        again: of these, what the backward pass repeats.
        backward: gradients.
        kept_bytes: of activations, from the forward to the backward pass.
        working_bytes: of activations, while the backward pass is in the layer.
    """

    forward: tuple[Kernel, ...]
    again: tuple[Kernel, ...]
    backward: tuple[Kernel, ...]
    kept_bytes: int
    working_bytes: int


def layer_pass(
    share: Layer,
    hidden: int,
    batch: Batch,
    precision: Precision,
    choices: StepChoices,
    training: TrainingChoices,
    experts: ExpertShare,
    tensor: int,
) -> Pass:
    """Return a layer of one chip of a tensor group of so many."""
    split = tensor if training.splits_norms else 1
    choices = replace(choices, latent=Latent.NAIVE)
    made = layer_kernels(share, hidden, batch, precision, choices, experts)
    masks = share.branches * (batch.tokens * hidden // split) * training.dropout
    forward: list[Kernel] = []
    for one in (kernel for kernel in made if kernel.kind is not KernelKind.KV_STORE):
        if one.role is Role.BETWEEN:
            between = between_products(share, hidden, batch.tokens, precision, split)
            forward.append(replace(between, act_out_bytes=between.act_out_bytes + masks))
            continue
        # What a prompt would read of the cache are activations of the same step; states at its end are not kept.
        read = one.act_in_bytes + one.kv_read_bytes
        forward.append(replace(one, act_in_bytes=read, kv_read_bytes=0, kv_write_bytes=0))
        if training.dropout and one.role is Role.SOFTMAX:
            forward.append(_dropped(one))
    again = {
        Recompute.NONE: (),
        Recompute.ATTENTION: () if choices.flash else tuple(one for one in forward if one.role in _ATTENDING),
        Recompute.LAYERS: tuple(forward),
    }[training.recompute]
    backward = [one for kernel in reversed(forward) for one in gradients_of(kernel)]
    row = precision.activations.bytes_of(batch.tokens * hidden) // split
    # Inputs of norms, and what attention and MLP read of them.
    all_kept = (share.norms + share.branches) * row + masks
    all_kept += sum(_kept(kernel, forgets=training.recompute is Recompute.ATTENTION) for kernel in forward)
    if training.recompute is Recompute.LAYERS:
        return Pass(tuple(forward), again, tuple(backward), row, all_kept)
    return Pass(tuple(forward), again, tuple(backward), all_kept, 0)


def _dropped(softmax: Kernel) -> Kernel:
    """Return the dropout of scores: it writes a mask as well."""
    elements = softmax.m * softmax.n * softmax.batch
    return replace(
        softmax,
        name=softmax.name.replace("softmax", "dropout"),
        act_in_bytes=softmax.act_out_bytes,
        act_out_bytes=softmax.act_out_bytes + elements,
        role=Role.DROPOUT,
    )


def _first_bytes(kernel: Kernel) -> int:
    """Bytes of the first operand of one of the two products of attention: queries, or scores."""
    return kernel.act_out_bytes * kernel.k // kernel.n


def _kept(kernel: Kernel, *, forgets: bool) -> int:
    """Bytes that a kernel of the forward pass keeps for its gradients, apart from what the norms write.

    Args:
        kernel: of the forward pass.
        forgets: whether scores are computed again.
    """
    if kernel.work in _PRODUCTS:
        read = 0 if kernel.role in _OPENING else kernel.act_in_bytes
        return read + (kernel.act_out_bytes if kernel.role in _WIDENING else 0)  # what the activation function reads
    if kernel.role is Role.VALUES:
        return kernel.act_in_bytes - _first_bytes(kernel) * forgets
    if kernel.role is Role.DROPOUT:
        return 0 if forgets else kernel.act_out_bytes  # what softmax wrote, and the mask
    if kernel.role is Role.SCORES:
        return kernel.act_in_bytes
    if kernel.work in _ATTENTION:
        return kernel.act_in_bytes + GRADIENTS.bytes_of(kernel.m * kernel.batch)  # and the logarithm of each sum
    return kernel.act_in_bytes if kernel.role is Role.COMBINING or kernel.work in _MIXING else 0


def gradients_of(kernel: Kernel) -> Iterator[Kernel]:
    """Yield the kernels of the backward pass that a kernel of the forward pass has."""
    name, operands, results = f"{kernel.name}_bwd", kernel.act_in_bytes, kernel.act_out_bytes
    if kernel.work in _PRODUCTS:
        yield replace(
            kernel, name=f"{name}_input", k=kernel.n, n=kernel.k, act_in_bytes=results, act_out_bytes=operands
        )
        yield _by_weights(kernel, GRADIENTS)
    elif kernel.role in (Role.SCORES, Role.VALUES):
        first = _first_bytes(kernel)
        derived = replace(kernel, kind=KernelKind.MATRIX_GROUPED, vector_elements=0)
        yield replace(
            derived, name=f"{name}_first", k=kernel.n, n=kernel.k,
            act_in_bytes=results + operands - first, act_out_bytes=first,
        )  # fmt: skip
        yield replace(
            derived, name=f"{name}_second", m=kernel.k, k=kernel.m,
            act_in_bytes=results + first, act_out_bytes=operands - first,
        )  # fmt: skip
    elif kernel.work in (*_ATTENTION, *_MIXING):
        # Attention reads its results as well; a convolution adds to the gradients of its weights.
        read = operands + results * (2 if kernel.work in _ATTENTION else 1)
        summed = GRADIENTS.bytes_of(kernel.k * kernel.n) if kernel.weight_bytes else 0
        yield replace(
            kernel,
            name=name,
            macs=2 * kernel.macs + kernel.again_macs,
            act_in_bytes=read + summed,
            act_out_bytes=operands + summed,
            vector_elements=2 * kernel.vector_elements,
        )
    else:
        passed = 2 * kernel.vector_elements
        yield replace(
            kernel, name=name, act_in_bytes=operands + results, act_out_bytes=operands, vector_elements=passed
        )


def _by_weights(kernel: Kernel, gradients: NumberFormat) -> Kernel:
    """Return the gradient by weights, added to what earlier micro-batches had: of experts one product each."""
    experts = max(1, round(kernel.distinct))
    summed = gradients.bytes_of(round(kernel.distinct * kernel.k * kernel.n) * kernel.batch)
    return replace(
        kernel,
        kind=KernelKind.MATRIX_GROUPED,
        name=f"{kernel.name}_bwd_weights",
        m=kernel.k,
        k=math.ceil(kernel.m / experts),
        batch=kernel.batch * experts,
        distinct=1.0,
        weight_bytes=0,
        act_in_bytes=kernel.act_in_bytes + kernel.act_out_bytes + summed,
        act_out_bytes=summed,
        vector_elements=0,
    )


def end_passes(model: Model, batch: Batch, precision: Precision, vocabulary: int, split: int) -> tuple[Pass, Pass]:
    """Return the embedding, and the head with the loss, of a chip with so many columns of the vocabulary.

    The loss keeps logits of 4 bytes; the last norm and the head keep their inputs.
    """
    tokens, row = batch.tokens, precision.activations.bytes_of(batch.tokens * model.hidden)
    (embedding,), (head,) = ends_kernels(model, batch, precision, vocabulary)
    summed = GRADIENTS.bytes_of(tokens * model.hidden)
    scattered = replace(
        embedding, name="embedding_bwd", weight_bytes=0, act_in_bytes=row + summed, act_out_bytes=summed
    )
    logits = tokens * vocabulary
    loss = vector_kernel("loss", (tokens, 1, vocabulary), logits, logits, precision.activations, logits)
    loss = replace(loss, part="head")
    gradients = tuple(gradient for kernel in (loss, head) for gradient in gradients_of(kernel))
    kept = 2 * row // split + GRADIENTS.bytes_of(logits)
    return Pass((embedding,), (), (scattered,), 0, 0), Pass((head, loss), (), gradients, kept, 0)


def update_kernel(elements: int, precision: Precision) -> Kernel:
    """Return the update by Adam of so many weights: reads gradient and states, writes states and weights.

    States are two moments of 4 bytes, and a copy of the weight in 4 bytes if it has fewer [rajbhandari20].
    """
    states = elements * state_bytes(precision)
    return Kernel(
        KernelKind.VECTOR, Work.VECTOR, "optimiser", 1, 1, elements,
        part="optimiser",
        act_in_bytes=GRADIENTS.bytes_of(elements) + states,
        act_out_bytes=states + precision.activations.bytes_of(elements),
        vector_elements=elements,
        rate=precision.activations.name,
    )  # fmt: skip


def state_bytes(precision: Precision) -> int:
    """Bytes of the optimiser's states per weight."""
    return 12 if precision.activations.bits < GRADIENTS.bits else 8
