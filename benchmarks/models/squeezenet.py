"""SqueezeNet 1.1 for 224×224 images, 1,000 classes [Iandola et al., 2016; version 1.1 of its authors]."""

import torch
from torch import nn
from weights import he


class Fire(nn.Module):
    def __init__(self, inputs: int, squeezed: int, expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Sequential(nn.Conv2d(inputs, squeezed, 1), nn.ReLU())
        self.expand_1 = nn.Sequential(nn.Conv2d(squeezed, expanded, 1), nn.ReLU())
        self.expand_3 = nn.Sequential(nn.Conv2d(squeezed, expanded, 3, padding=1), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.squeeze(x)
        return torch.cat([self.expand_1(x), self.expand_3(x)], 1)


def model() -> nn.Module:
    return he(
        nn.Sequential(
            nn.Conv2d(3, 64, 3, 2),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(64, 16, 64),
            Fire(128, 16, 64),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(128, 32, 128),
            Fire(256, 32, 128),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            Fire(256, 48, 192),
            Fire(384, 48, 192),
            Fire(384, 64, 256),
            Fire(512, 64, 256),
            nn.Dropout(),
            nn.Conv2d(512, 1000, 1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
    )


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
