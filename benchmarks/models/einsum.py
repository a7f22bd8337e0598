"""Attention written with einsum, as in tensor libraries without heads: 8 heads of 32, 64 tokens; a bilinear head."""

import torch
from torch import nn

HEADS, HEAD, WIDTH = 8, 32, 256


class Einsum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Parameter(torch.randn(3, WIDTH, HEADS, HEAD) * WIDTH**-0.5)
        self.out = nn.Parameter(torch.randn(HEADS, HEAD, WIDTH) * WIDTH**-0.5)
        self.form = nn.Parameter(torch.randn(WIDTH, WIDTH, 4) / WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = torch.einsum("btw,pwhd->pbthd", x, self.qkv).unbind(0)
        weights = torch.einsum("bqhd,bkhd->bhqk", q, k).mul(HEAD**-0.5).softmax(-1)
        y = torch.einsum("bhqk,bkhd,hdw->bqw", weights, v, self.out)
        return torch.einsum("btv,vwc,btw->btc", x, self.form, y)


def model() -> nn.Module:
    return Einsum()


def example_inputs() -> torch.Tensor:
    return torch.randn(2, 64, WIDTH)
