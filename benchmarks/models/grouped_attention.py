"""Causal scaled dot-product attention with 16 heads of queries and 4 of keys and values, 128 tokens."""

import torch
from torch import nn

WIDTH, HEADS, GROUPS, HEAD = 1024, 16, 4, 64


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q = nn.Linear(WIDTH, HEADS * HEAD, bias=False)
        self.k = nn.Linear(WIDTH, GROUPS * HEAD, bias=False)
        self.v = nn.Linear(WIDTH, GROUPS * HEAD, bias=False)
        self.out = nn.Linear(HEADS * HEAD, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part(x).unflatten(-1, (-1, HEAD)).transpose(1, 2) for part in (self.q, self.k, self.v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        result: torch.Tensor = self.out(y.transpose(1, 2).flatten(2))
        return result


def model() -> nn.Module:
    return Attention()


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 128, WIDTH)
