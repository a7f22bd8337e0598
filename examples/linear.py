"""A linear layer of 6 inputs and 4 outputs: a product of a matrix and a vector, and a bias."""

import torch
from torch import nn


def model() -> nn.Module:
    return nn.Linear(6, 4)


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 6)
