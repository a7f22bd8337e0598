"""ShuffleNet V2, width 1.0, for 224×224 images, 1,000 classes [Ma et al., 2018, table 5]."""

import torch
from torch import nn
from weights import he

STAGES = ((116, 4), (232, 8), (464, 4))


def pointwise(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


def depthwise(channels: int, stride: int) -> list[nn.Module]:
    return [nn.Conv2d(channels, channels, 3, stride, 1, groups=channels, bias=False), nn.BatchNorm2d(channels)]


def shuffled(x: torch.Tensor) -> torch.Tensor:
    batch, channels, height, width = x.shape
    return x.view(batch, 2, channels // 2, height, width).transpose(1, 2).reshape(batch, channels, height, width)


class Unit(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        half = outputs // 2
        self.splits = stride == 1
        entering = half if self.splits else inputs
        self.left = nn.Sequential(*([] if self.splits else [*depthwise(inputs, stride), *pointwise(inputs, half)]))
        self.right = nn.Sequential(*pointwise(entering, half), *depthwise(half, stride), *pointwise(half, half))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = x.chunk(2, 1) if self.splits else (x, x)
        return shuffled(torch.cat([self.left(left), self.right(right)], 1))


def model() -> nn.Module:
    channels = 24
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    for outputs, repeats in STAGES:
        for repeat in range(repeats):
            layers.append(Unit(channels, outputs, 1 if repeat else 2))
            channels = outputs
    layers += [*pointwise(channels, 1024), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 1000)]
    return he(nn.Sequential(*layers))


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
