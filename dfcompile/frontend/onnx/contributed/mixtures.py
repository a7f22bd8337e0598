"""Contributed mixtures of experts."""

from collections.abc import Mapping

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.contributed_operator import REAL, Call, ContributedOperator, Shape


def _mixture(call: Call) -> Mapping[str, Shape]:
    """Experts ``fc1[e, i, h]`` and ``fc2[e, h, i]`` of tokens ``input[t, h]`` or ``[b, s, h]``, rated ``[t, e]``."""
    data, first = call.expect_rank("input", 2, 3), call.expect_rank("fc1_experts_weights", 3)
    if data is None or first is None:
        return {}
    experts, inner, width = first
    if width != data[-1]:
        raise UserError(f"'fc1_experts_weights' has rows of {width} against {data[-1]} of 'input'")
    tokens = data[0] if len(data) == 2 else data[0] * data[1]
    call.expect("router_probs", (tokens, experts))
    call.expect("fc1_experts_bias", (experts, inner))
    if call.attributes.get("activation_type") != "swiglu":  # which halves what comes between the two
        call.expect("fc2_experts_weights", (experts, width, inner))
    call.expect("fc2_experts_bias", (experts, width))
    return {"output": data}


MIXTURES = (
    ContributedOperator(
        "MoE",
        "input:T router_probs:T fc1_experts_weights:T fc1_experts_bias:T? fc2_experts_weights:T fc2_experts_bias:T? "
        "fc3_experts_weights:T? fc3_experts_bias:T?",
        "output:T",
        _mixture,
        {"T": ("float32", "float16")},
        {
            "activation_alpha": 1.0,
            "activation_beta": 0.0,
            "activation_type": "relu",
            "k": 1,
            "normalize_routing_weights": 0,
            "swiglu_fusion": 0,
            "swiglu_limit": REAL,
            "use_sparse_mixer": 0,
        },
    ),
)
