"""A step of a model: every kernel of every layer, of the embedding and of the head."""

from collections.abc import Iterator

from msgspec import Struct

from dfcompile.language_models.formats import Precision
from dfcompile.language_models.model import Experts, Layer, Model
from dfcompile.language_models.steps.attention_kernels import attention_kernels, projection
from dfcompile.language_models.steps.batch import Batch
from dfcompile.language_models.steps.kernel import Fusion, Kernel, KernelKind, StepChoices, Work
from dfcompile.language_models.steps.mlp_kernels import (
    WHOLE,
    ExpertShare,
    between_products,
    dense_kernels,
    expert_kernels,
)
from dfcompile.records import replace


class Step(Struct, frozen=True):
    """The kernels of a step, those of a layer kind one after the other."""

    kernels: tuple[Kernel, ...]

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.total("macs")

    def total(self, field: str) -> int:
        """Return the sum of a field of all kernels, as often as they run."""
        return sum(kernel.count * int(getattr(kernel, field)) for kernel in self.kernels)


def layer_kernels(
    layer: Layer, hidden: int, batch: Batch, precision: Precision, choices: StepChoices, share: ExpertShare = WHOLE
) -> tuple[Kernel, ...]:
    """Return the kernels of one layer, in order; they belong to no part yet.

    Where all is fused, activations reach memory at the borders of the layer alone.
    """
    precision = precision.within(layer.formats)
    if isinstance(layer.mlp, Experts):
        mlp = expert_kernels(layer.mlp, hidden, batch.tokens, precision, choices, share)
    else:
        mlp = dense_kernels(layer.mlp, hidden, batch.tokens, precision)
    attention = attention_kernels(layer.attention, hidden, batch, precision, choices)
    shown: list[Kernel] = []
    for kernel in (*attention, *mlp, between_products(layer, hidden, batch.tokens, precision)):
        if choices.fusion is Fusion.NONE or kernel.work is not Work.VECTOR:
            shown.append(kernel)
        else:  # its elements pass the vector unit all the same, beside the product that it is taken as part of
            passed = shown[-1].vector_elements + kernel.vector_elements
            shown[-1] = replace(shown[-1], vector_elements=passed)
    if choices.fusion is not Fusion.FULL:
        return tuple(shown)
    border, last = precision.activations.bytes_of(batch.tokens * hidden), len(shown) - 1
    return tuple(
        replace(kernel, act_in_bytes=0 if number else border, act_out_bytes=0 if number < last else border)
        for number, kernel in enumerate(shown)
    )


def ends_kernels(model: Model, batch: Batch, precision: Precision, vocabulary: int) -> Iterator[Kernel]:
    """Yield the look-up of embeddings and, if a token needs logits, the head; ``vocabulary`` is the chip's part."""
    hidden, tokens = model.hidden, batch.tokens
    tables = 2 if model.positions else 1
    yield Kernel(
        KernelKind.GATHER, Work.VECTOR, "embedding", tokens, 1, hidden,
        part="embedding",
        weight_bytes=precision.embedding.bytes_of(tokens * hidden * tables),
        act_out_bytes=precision.activations.bytes_of(tokens * hidden),
        rate=precision.activations.name,
    )  # fmt: skip
    if batch.head_rows:
        yield replace(projection("lm_head", batch.head_rows, hidden, vocabulary, precision, "head"), part="head")


def step_of(model: Model, batch: Batch, precision: Precision, choices: StepChoices) -> Step:
    """Return all kernels of a step on one chip."""
    kernels: list[Kernel] = []
    for kind in model.kinds:
        made = layer_kernels(kind.layer, model.hidden, batch, precision, choices)
        kernels += [replace(kernel, part=kind.name, count=kind.count) for kernel in made]
    kernels += ends_kernels(model, batch, precision, model.vocabulary)
    return Step(tuple(kernels))
