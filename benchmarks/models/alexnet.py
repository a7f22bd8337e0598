"""AlexNet for 224×224 images, one column, 1,000 classes [Krizhevsky, 2014, "One weird trick", section 5]."""

import torch
from torch import nn


def model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(256, 256, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(3, 2),
        nn.AdaptiveAvgPool2d((6, 6)),
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(256 * 6 * 6, 4096),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(4096, 4096),
        nn.ReLU(),
        nn.Linear(4096, 1000),
    )


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
