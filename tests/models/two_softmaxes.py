"""A softmax over columns and one over rows: a split by one axis, then by the other, needs an all-to-all."""

import torch
from torch import nn


class _TwoSoftmaxes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        columns = torch.softmax(x, dim=-1).t().contiguous()
        return torch.softmax(columns, dim=-1)


def model() -> nn.Module:
    return _TwoSoftmaxes().eval()


def example_inputs() -> torch.Tensor:
    return torch.randn(512, 2048)
