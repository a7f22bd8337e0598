"""A bidirectional LSTM of two layers, 128 features, 256 units, 32 steps, and a classifier of its last step."""

import torch
from torch import nn


class Sequence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(128, 256, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(512, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.head(self.recurrent(x)[0][:, -1])
        return y


def model() -> nn.Module:
    return Sequence()


def example_inputs() -> torch.Tensor:
    return torch.randn(4, 32, 128)
