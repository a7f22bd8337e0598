"""Kernels of MLPs, dense or mixtures of experts, and of what stands between products."""

import math
from collections.abc import Iterator

from dfcompile.language_models.formats import Precision
from dfcompile.language_models.model import DenseMlp, Experts, Layer
from dfcompile.language_models.steps.attention_kernels import product_kind, projection
from dfcompile.language_models.steps.choices import Fusion, StepChoices
from dfcompile.language_models.steps.experts import chosen_shares, expected_distinct, expected_distinct_uniform
from dfcompile.language_models.steps.kernel import Kernel, KernelKind, Work
from dfcompile.language_models.steps.share import ExpertShare


def dense_kernels(
    mlp: DenseMlp, hidden: int, part: str, count: int, tokens: int, precision: Precision, prefix: str = ""
) -> Iterator[Kernel]:
    """Yield the products of one MLP."""
    opening = f"{prefix}gate_up" if mlp.gated else f"{prefix}up"
    yield projection(part, count, opening, tokens, hidden, mlp.opening, precision, "mlp")
    yield projection(part, count, f"{prefix}down", tokens, mlp.width, hidden, precision, "mlp")


def expert_kernels(
    experts: Experts,
    hidden: int,
    part: str,
    count: int,
    tokens: int,
    precision: Precision,
    choices: StepChoices,
    share: ExpertShare,
) -> Iterator[Kernel]:
    """Yield router, dispatch, the products of the experts that tokens touch, shared experts and combination.

    Weights are those of the expected number of distinct experts. ``experts`` is the whole mixture; ``share`` says
    which part of it the chip has, and its rows are those of the fullest chip.
    """
    yield projection(part, count, "router", tokens, hidden, experts.count, precision, "router")
    met = tokens * share.tokens
    rows = -(-met * experts.chosen // share.ranks)
    if share.imbalance > 1:
        rows = math.ceil(rows * share.imbalance)
    touched = distinct_experts(experts, met, choices) / share.ranks
    width = experts.width // share.split
    yield _moved("dispatch", part, count, tokens * hidden, rows * hidden, precision)
    for name, k, n in (("expert_gate_up", hidden, 2 * width), ("expert_down", width, hidden)):
        yield Kernel(
            product_kind(rows), Work.GEMM, name, part, count, rows, k, n,
            macs=rows * k * n,
            weight_bytes=round(touched * precision.experts.bytes_of(k * n)),
            act_in_bytes=precision.activations.bytes_of(rows * k),
            act_out_bytes=precision.activations.bytes_of(rows * n),
            vector_elements=round(touched * k * n) * precision.widens(precision.experts),
            rate=precision.product(precision.experts),
            distinct=max(1.0, touched),
        )  # fmt: skip
    shared = experts.shared
    if shared is not None:
        yield from dense_kernels(shared, hidden, part, count, tokens, precision, "shared_")
    yield _moved("combine", part, count, rows * hidden, tokens * hidden, precision)


def distinct_experts(experts: Experts, tokens: int, choices: StepChoices) -> float:
    """Experts that so many tokens touch in the mean."""
    if choices.expert_shares:
        return expected_distinct(chosen_shares(choices.expert_shares, experts.chosen), tokens)
    return expected_distinct_uniform(experts.count, experts.chosen, tokens)


def between_products(layer: Layer, hidden: int, part: str, count: int, tokens: int, precision: Precision) -> Kernel:
    """Return norms, residuals and activation functions: each reads and writes once.

    Rotations of queries and keys, and their norms, are part of the products that make them.
    """
    whole = (layer.norms + 2) * hidden
    opened, closed = _activated(layer.mlp)
    return Kernel(
        KernelKind.VECTOR, Work.VECTOR, "norms_residuals_act", part, count, tokens, 1, hidden,
        act_in_bytes=precision.activations.bytes_of(tokens * (whole + opened)),
        act_out_bytes=precision.activations.bytes_of(tokens * (whole + closed)),
        vector_elements=tokens * (whole + opened),
        rate=precision.activations.name,
    )  # fmt: skip


def _activated(mlp: DenseMlp | Experts) -> tuple[int, int]:
    """Elements per token that activation functions read and write."""
    if isinstance(mlp, DenseMlp):
        return mlp.opening, mlp.width
    shared = mlp.shared_width
    return 2 * (mlp.chosen * mlp.width + shared), mlp.chosen * mlp.width + shared


def is_shown(kernel: Kernel, fusion: Fusion) -> bool:
    """Whether a kernel stands by itself under a fusion."""
    return fusion is Fusion.NONE or kernel.work is not Work.VECTOR


def _moved(name: str, part: str, count: int, taken: int, given: int, precision: Precision) -> Kernel:
    return Kernel(
        KernelKind.VECTOR, Work.VECTOR, name, part, count, 1, 1, max(taken, given),
        act_in_bytes=precision.activations.bytes_of(taken),
        act_out_bytes=precision.activations.bytes_of(given),
        vector_elements=taken,
        rate=precision.activations.name,
    )  # fmt: skip
