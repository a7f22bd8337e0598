"""An LSTM of 64 units over 8 steps of 32 features; random weights."""

import torch
from torch import nn


class Sequence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(32, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.recurrent(x)[0]
        return y


def model() -> nn.Module:
    torch.manual_seed(0)
    return Sequence().eval()


def example_inputs() -> torch.Tensor:
    return torch.randn(8, 1, 32)
