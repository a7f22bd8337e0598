"""nn.MultiheadAttention with the weights among its results: 8 heads of 64, 2 sequences of 50 tokens beside 60."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(512, 8)

    def forward(self, tokens: torch.Tensor, context: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        result: tuple[torch.Tensor, torch.Tensor] = self.attention(tokens, context, context)
        return result


def model() -> nn.Module:
    return Attention()


def example_inputs() -> tuple[torch.Tensor, ...]:
    return torch.randn(50, 2, 512), torch.randn(60, 2, 512)
