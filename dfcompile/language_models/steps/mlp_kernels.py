"""Kernels of MLPs, dense or mixtures of experts, and of what stands between products."""

import math
from collections.abc import Iterator

from dfcompile.language_models.formats import Precision
from dfcompile.language_models.model import DenseMlp, Experts, Layer
from dfcompile.language_models.steps.attention_kernels import projection, vector_kernel
from dfcompile.language_models.steps.choices import StepChoices
from dfcompile.language_models.steps.experts import (
    ExpertShare,
    chosen_shares,
    expected_distinct,
    expected_distinct_uniform,
)
from dfcompile.language_models.steps.kernel import Kernel
from dfcompile.records import replace


def dense_kernels(mlp: DenseMlp, hidden: int, tokens: int, precision: Precision, prefix: str = "") -> Iterator[Kernel]:
    """Yield the products of one MLP."""
    opening = f"{prefix}gate_up" if mlp.gated else f"{prefix}up"
    yield projection(opening, tokens, hidden, mlp.opening, precision, "mlp")
    yield projection(f"{prefix}down", tokens, mlp.width, hidden, precision, "mlp")


def expert_kernels(
    experts: Experts, hidden: int, tokens: int, precision: Precision, choices: StepChoices, share: ExpertShare
) -> Iterator[Kernel]:
    """Yield router, dispatch, the products of the experts that tokens touch, shared experts and combination.

    Weights are those of the expected number of distinct experts. ``experts`` is the whole mixture; ``share`` says
    which part of it the chip has, and its rows are those of the fullest chip.
    """
    yield projection("router", tokens, hidden, experts.count, precision, "router")
    met = tokens * share.tokens
    rows = -(-met * experts.chosen // share.ranks)
    if share.imbalance > 1:
        rows = math.ceil(rows * share.imbalance)
    touched = distinct_experts(experts, met, choices) / share.ranks
    width = experts.width // share.split
    yield _moved("dispatch", tokens * hidden, rows * hidden, precision)
    for name, k, n in (("expert_gate_up", hidden, 2 * width), ("expert_down", width, hidden)):
        yield replace(
            projection(name, rows, k, n, precision, "experts"),
            weight_bytes=round(touched * precision.experts.bytes_of(k * n)),
            vector_elements=round(touched * k * n) * precision.widens(precision.experts),
            distinct=max(1.0, touched),
        )
    if experts.shared_width:
        yield from dense_kernels(experts.shared, hidden, tokens, precision, "shared_")
    yield _moved("combine", rows * hidden, tokens * hidden, precision)


def distinct_experts(experts: Experts, tokens: int, choices: StepChoices) -> float:
    """Experts that so many tokens touch in the mean."""
    if choices.expert_shares:
        return expected_distinct(chosen_shares(choices.expert_shares, experts.chosen), tokens)
    return expected_distinct_uniform(experts.count, experts.chosen, tokens)


def between_products(layer: Layer, hidden: int, tokens: int, precision: Precision) -> Kernel:
    """Return norms, residuals and activation functions: each reads and writes once.

    Rotations of queries and keys, and their norms, are part of the products that make them.
    """
    whole, mlp = (layer.norms + 2) * hidden, layer.mlp
    if isinstance(mlp, DenseMlp):
        opened, closed = mlp.opening, mlp.width
    else:
        closed = mlp.chosen * mlp.width + mlp.shared_width
        opened = 2 * closed
    read, written = tokens * (whole + opened), tokens * (whole + closed)
    return vector_kernel("norms_residuals_act", (tokens, 1, hidden), read, written, precision.activations, read)


def _moved(name: str, taken: int, given: int, precision: Precision) -> Kernel:
    return vector_kernel(name, (1, 1, max(taken, given)), taken, given, precision.activations, taken)
