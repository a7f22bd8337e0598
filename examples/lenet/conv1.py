"""The first convolution of LeNet alone: 6 filters of 5×5 over one 28×28 grey image."""

import torch
from torch import nn


class FirstConvolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv1(x)


def model() -> nn.Module:
    return FirstConvolution()


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 1, 28, 28)
