"""GPT-2 with 12 layers of `transformers`, 128 tokens, random weights; needs `pip install transformers`."""

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

TOKENS = 128


class Gpt2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gpt2 = GPT2LMHeadModel(GPT2Config(attn_implementation="eager", use_cache=False))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.gpt2(tokens, use_cache=False).logits
        return logits


def model() -> nn.Module:
    return Gpt2()


def example_inputs() -> torch.Tensor:
    return torch.randint(0, 50257, (1, TOKENS))
