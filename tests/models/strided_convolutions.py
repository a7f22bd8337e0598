"""Convolutions on a non-square picture: strides, padding, dilation, groups, depthwise; batch norm; average pooling."""

import torch
from torch import nn


class StridedConvolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.normalise = nn.BatchNorm2d(4)  # first of all, so that no convolution takes it in
        self.strided = nn.Conv2d(4, 6, (3, 5), stride=(2, 1), padding=(1, 2))
        self.folded = nn.BatchNorm2d(6)  # the exporter folds it into the convolution before it
        self.grouped = nn.Conv2d(6, 8, 3, groups=2, bias=False)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8)
        self.pointwise = nn.Conv2d(8, 5, 1, stride=(1, 2))
        self.pool = nn.AvgPool2d((3, 2), stride=(1, 2), padding=(1, 0), count_include_pad=False)
        self.linear = nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.folded(self.strided(self.normalise(x))))
        x = torch.relu(self.grouped(x))
        x = torch.sigmoid(self.depthwise(x))
        x = self.pool(self.pointwise(x))
        return self.linear(x.mean(dim=(2, 3)))


def model() -> nn.Module:
    network = StridedConvolutions()
    # Fresh statistics are 0 and 1, with which a wrong normalisation can look right.
    for layer in (network.normalise, network.folded):
        layer.running_mean.uniform_(-0.5, 0.5)
        layer.running_var.uniform_(0.5, 1.5)
    return network


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 4, 11, 16)
