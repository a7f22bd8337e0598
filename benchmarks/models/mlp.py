"""A multilayer perceptron for 28×28 digits: 784, 512, 256, 10 units."""

import torch
from torch import nn


def model() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10), nn.Softmax(1)
    )


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 1, 28, 28)
