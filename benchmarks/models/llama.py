"""A Llama of `transformers` with two layers, 64 tokens: shared keys, rotary positions.

Needs `pip install transformers`.
"""

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

TOKENS = 64
VOCABULARY = 4096


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.llama = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=VOCABULARY,
                hidden_size=512,
                intermediate_size=1408,
                num_hidden_layers=2,
                num_attention_heads=8,
                num_key_value_heads=2,
                attn_implementation="eager",
            )
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.llama(tokens, use_cache=False).logits
        return logits


def model() -> nn.Module:
    return Llama()


def example_inputs() -> torch.Tensor:
    return torch.randint(0, VOCABULARY, (1, TOKENS))
