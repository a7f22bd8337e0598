"""One token through a decoder layer, 8 heads of 64, beside 127 cached ones; random weights [Vaswani et al., 2017]."""

import math

import torch
from torch import nn

CACHED, HEADS, WIDTH = 127, 8, 512


class _Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.projection = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        q, k, v = (
            part.view(1, HEADS, WIDTH // HEADS).transpose(0, 1)
            for part in self.qkv(self.norms[0](x)).split(WIDTH, dim=-1)
        )
        keys, values = torch.cat([keys, k], 1), torch.cat([values, v], 1)
        mixed = torch.softmax(q @ keys.transpose(-1, -2) / math.sqrt(WIDTH // HEADS), dim=-1) @ values
        x = x + self.projection(mixed.transpose(0, 1).reshape(1, WIDTH))
        return x + self.mlp(self.norms[1](x)), keys, values


def model() -> nn.Module:
    torch.manual_seed(0)
    return _Layer().eval()


def example_inputs() -> tuple[torch.Tensor, ...]:
    cache = HEADS, CACHED, WIDTH // HEADS
    return torch.randn(1, WIDTH), torch.randn(cache), torch.randn(cache)
