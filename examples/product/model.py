"""One matrix product, 32 x 96 by 96 x 64: every figure of its mapping can be worked out by hand (docs/mapping.md)."""

import torch
from torch import nn


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(96, 64, bias=False).eval()


def example_inputs() -> torch.Tensor:
    return torch.randn(32, 96)
