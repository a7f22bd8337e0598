"""Softmax over the rows of a matrix of 4 × 8 elements."""

import torch
from torch import nn


def model() -> nn.Module:
    return nn.Softmax(dim=-1)


def example_inputs() -> torch.Tensor:
    return torch.randn(4, 8)
