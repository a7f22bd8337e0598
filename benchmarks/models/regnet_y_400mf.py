"""RegNetY-400MF for 224×224 images, 1,000 classes [Radosavovic et al., 2020, figure 18 and section 5]."""

import torch
from torch import nn

# Width and depth of each stage; 8 channels per group.
STAGES = ((48, 1), (104, 3), (208, 6), (440, 6))
GROUP = 8


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]


class SqueezeExcitation(nn.Module):
    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, squeezed, 1),
            nn.ReLU(),
            nn.Conv2d(squeezed, channels, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.gate(x) * x
        return y


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *convolution(inputs, outputs, 1),
            nn.ReLU(),
            *convolution(outputs, outputs, 3, stride, outputs // GROUP),
            nn.ReLU(),
            SqueezeExcitation(outputs, round(inputs / 4)),
            *convolution(outputs, outputs, 1),
        )
        fits = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if fits else nn.Sequential(*convolution(inputs, outputs, 1, stride))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.shortcut(x) + self.layers(x))


def model() -> nn.Module:
    channels = 32
    layers: list[nn.Module] = [*convolution(3, channels, 3, 2), nn.ReLU()]
    for outputs, repeats in STAGES:
        for repeat in range(repeats):
            layers.append(Block(channels, outputs, 1 if repeat else 2))
            channels = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
