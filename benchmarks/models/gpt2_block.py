"""One block of GPT-2 (small): 128 tokens of 768, 12 heads, causal; random weights [Radford et al., 2019]."""

import math

import torch
from torch import nn

TOKENS, HIDDEN, HEADS = 128, 768, 12


class _Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)])
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.projection = nn.Linear(HIDDEN, HIDDEN)
        self.mlp = nn.Sequential(
            nn.Linear(HIDDEN, 4 * HIDDEN), nn.GELU(approximate="tanh"), nn.Linear(4 * HIDDEN, HIDDEN)
        )
        self.register_buffer("later", torch.full((TOKENS, TOKENS), -1e9).triu(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            part.view(TOKENS, HEADS, HIDDEN // HEADS).transpose(0, 1)
            for part in self.qkv(self.norms[0](x)).split(HIDDEN, dim=-1)
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(HIDDEN // HEADS) + self.later
        mixed = (torch.softmax(scores, dim=-1) @ v).transpose(0, 1).reshape(TOKENS, HIDDEN)
        x = x + self.projection(mixed)
        return x + torch.as_tensor(self.mlp(self.norms[1](x)))


def model() -> nn.Module:
    torch.manual_seed(0)
    return _Block().eval()


def example_inputs() -> torch.Tensor:
    return torch.randn(TOKENS, HIDDEN)
