"""A Mixtral of `transformers` with two layers of four experts, two of them per token.

Needs `pip install transformers`.
"""

import torch
from torch import nn
from transformers import MixtralConfig, MixtralForCausalLM

TOKENS = 16
VOCABULARY = 1024


class Mixtral(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mixtral = MixtralForCausalLM(
            MixtralConfig(
                vocab_size=VOCABULARY,
                hidden_size=256,
                intermediate_size=512,
                num_hidden_layers=2,
                num_attention_heads=8,
                num_key_value_heads=2,
                num_local_experts=4,
                num_experts_per_tok=2,
                attn_implementation="eager",
                experts_implementation="batched_mm",  # the others are loops over data: PyTorch exports none of them
            )
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.mixtral(tokens, use_cache=False).logits
        return logits


def model() -> nn.Module:
    return Mixtral()


def example_inputs() -> torch.Tensor:
    return torch.randint(0, VOCABULARY, (1, TOKENS))
