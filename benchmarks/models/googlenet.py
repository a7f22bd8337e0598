"""GoogLeNet with batch normalisation for 224×224 images, 1,000 classes [Szegedy et al., 2015, table 1]; 3×3 for 5×5."""

import torch
from torch import nn
from weights import he


def convolution(inputs: int, outputs: int, kernel: int = 1, stride: int = 1, padding: int = 0) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False), nn.BatchNorm2d(outputs, eps=1e-3), nn.ReLU()
    )


class Inception(nn.Module):
    def __init__(self, inputs: int, one: int, reduce_3: int, three: int, reduce_5: int, five: int, pool: int) -> None:
        super().__init__()
        self.one = convolution(inputs, one)
        self.three = nn.Sequential(convolution(inputs, reduce_3), convolution(reduce_3, three, 3, padding=1))
        self.five = nn.Sequential(convolution(inputs, reduce_5), convolution(reduce_5, five, 3, padding=1))
        self.pool = nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), convolution(inputs, pool))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.one(x), self.three(x), self.five(x), self.pool(x)], 1)


def model() -> nn.Module:
    return he(
        nn.Sequential(
            convolution(3, 64, 7, 2, 3),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            convolution(64, 64),
            convolution(64, 192, 3, padding=1),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            Inception(192, 64, 96, 128, 16, 32, 32),
            Inception(256, 128, 128, 192, 32, 96, 64),
            nn.MaxPool2d(3, 2, ceil_mode=True),
            Inception(480, 192, 96, 208, 16, 48, 64),
            Inception(512, 160, 112, 224, 24, 64, 64),
            Inception(512, 128, 128, 256, 24, 64, 64),
            Inception(512, 112, 144, 288, 32, 64, 64),
            Inception(528, 256, 160, 320, 32, 128, 128),
            nn.MaxPool2d(2, 2, ceil_mode=True),
            Inception(832, 256, 160, 320, 32, 128, 128),
            Inception(832, 384, 192, 384, 48, 128, 128),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(0.2),
            nn.Linear(1024, 1000),
        )
    )


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
