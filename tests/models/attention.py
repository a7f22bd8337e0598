"""Small self-attention over a batch of sequences: batched products, layer norm, softmax over the last axis."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int = 12, heads: int = 3) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.project = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        normal = self.norm(x)
        query, key, value = (
            layer(normal).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(2, 3) * (width // self.heads) ** -0.5
        mixed = torch.softmax(scores, dim=-1) @ value
        return x + self.project(mixed.transpose(1, 2).reshape(batch, length, width))


def model() -> nn.Module:
    return Attention()


def example_inputs() -> torch.Tensor:
    return torch.randn(2, 5, 12)
