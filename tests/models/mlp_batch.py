"""Two linear layers, 1024 to 4096 to 1024, on 8 times 16 rows."""

import torch
from torch import nn


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).eval()


def example_inputs() -> torch.Tensor:
    return torch.randn(8, 16, 1024)
