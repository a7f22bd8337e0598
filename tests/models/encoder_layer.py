"""One encoder layer of a transformer."""

import torch
from torch import nn


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.TransformerEncoderLayer(d_model=64, nhead=4, dim_feedforward=128, batch_first=True).eval()


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 16, 64)
