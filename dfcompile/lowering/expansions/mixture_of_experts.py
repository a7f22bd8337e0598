"""MoE of onnxruntime: every token goes through the experts that its router rates highest."""

from collections.abc import Mapping

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expansions.elementwise import GELU_BY_TANH
from dfcompile.lowering.expressions import sum_dtype
from dfcompile.lowering.operators import MatMul

_ACTIVATIONS: Mapping[str, str] = {
    "gelu": GELU_BY_TANH,
    "identity": "a",
    "relu": "max(0, a)",
    "silu": "a / (1 + exp(-a))",
}


@onnx_expansion("com.microsoft.MoE", "dense", source="onnxruntime", default=True)
def dense_mixture(op: Operator, build: CanonicalFragment) -> None:
    """``Y[t] = sum_e weight[t, e] * expert_e(X[t])``: all experts see all tokens, most of them with weight 0.

    Which tokens an expert sees is only known when the model runs; this is the work whatever they are: as many times
    that of the chosen experts as there are experts for each of them.
    """
    op.check_unknown(operands={6: "fc3_experts_weights", 7: "fc3_experts_bias"}, attributes={"use_sparse_mixer": 0})
    activation = op.choice("activation_type", "relu", _ACTIVATIONS)
    x, first, second, y = op.input(0), op.input(2), op.input(4), op.output()
    experts, inner, width = first.shape
    k = op.integer("k", 1, range(1, experts + 1), f"1 to {experts} experts")
    tokens = x.elements // width
    rows = build.shaped(x, "tokens", (tokens, width))
    weights = _weights(op, build, k)
    dtype = sum_dtype(x.dtype)
    product, shape = MatMul(transpose_b=True), (experts, tokens, inner)
    hidden = build.made("hidden", product, [rows, first], shape, dtype, step="first")
    bias = op.optional_input(3)
    if bias is not None:
        operands, axes = [hidden, bias], [(0, 1, 2), (0, 2)]
        hidden = build.computed("hidden_biased", "a + b", operands, shape, dtype, axes=axes, step="first_bias")
    active = build.computed("active", _ACTIVATIONS[activation], [hidden], hidden.shape, x.dtype, step="activate")
    answers = build.made("answers", product, [active, second], (experts, tokens, width), dtype, step="second")
    result = y if y.rank == 2 else build.array("mixed", (tokens, width))
    operands, source = [answers, weights], "a * b"
    bias = op.optional_input(5)
    if bias is not None:
        operands, source = [*operands, build.view(bias, "second_bias", (experts, 1, width))], "(a + c) * b"
    build.reduce(Reduction.SUM, operands, result, [0], source, step="mix")
    build.view_as(result, y)


def _weights(op: Operator, build: CanonicalFragment, k: int) -> Tensor:
    """Return ``[e, t, 1]``: what each expert's answer counts for each token; 0 beyond the k experts rated highest.

    An expert is one of the k if fewer than k others are rated higher, or as high and stand before it.
    """
    rates = op.input(1)
    tokens, experts = rates.shape
    dtype = sum_dtype(rates.dtype)
    top = build.reduced("top", Reduction.MAX, [rates], [1], dtype=dtype, step="router_max")
    shares = build.computed("shares", "exp(a - b)", [rates, top], rates.shape, dtype, step="router_exp")
    numbers = np.arange(experts, dtype=np.int32)
    before = build.parameter("before", numbers[None, :] < numbers[:, None])
    ranks = build.array("ranks", rates.shape, "int32")
    own, others = build.view(rates, "own", (tokens, experts, 1)), build.view(rates, "others", (tokens, 1, experts))
    source = "1 if b > a or (b == a and c) else 0"
    build.reduce(Reduction.SUM, [own, others, before], ranks, [2], source, step="rank")
    is_normalised = op.integer("normalize_routing_weights", 0) != 0
    if is_normalised:
        source = f"a if b < {k} else 0"
        shares = build.computed("kept_shares", source, [shares, ranks], rates.shape, dtype, step="choose")
    total = build.reduced("total", Reduction.SUM, [shares], [1], dtype=dtype, step="router_sum")
    operands, source = [shares, total, ranks], f"a / b if c < {k} else 0"
    if is_normalised:
        operands, source = operands[:2], "a / b"
    axes = [(1, 0)] * len(operands)
    weights = build.computed("weights", source, operands, (experts, tokens), dtype, axes=axes, step="router_weights")
    return build.view(weights, "weights_by_expert", (experts, tokens, 1))
