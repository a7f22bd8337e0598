"""The encoder layer of "Attention Is All You Need": 8 heads of 64, 2,048 hidden units; 10 × 32 tokens."""

import torch
from torch import nn


def model() -> nn.Module:
    return nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)


def example_inputs() -> torch.Tensor:
    return torch.randn(10, 32, 512)
