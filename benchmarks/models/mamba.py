"""A Mamba of `transformers` with two layers, 16 tokens: its recurrence is unrolled.

Needs `pip install transformers`.
"""

import torch
from torch import nn
from transformers import MambaConfig, MambaForCausalLM

TOKENS = 16
VOCABULARY = 1024


class Mamba(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mamba = MambaForCausalLM(
            MambaConfig(vocab_size=VOCABULARY, hidden_size=256, num_hidden_layers=2, use_cache=False)
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.mamba(tokens, use_cache=False).logits
        return logits


def model() -> nn.Module:
    return Mamba()


def example_inputs() -> torch.Tensor:
    return torch.randint(0, VOCABULARY, (1, TOKENS))
