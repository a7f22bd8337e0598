"""EfficientNet-B0 for 224×224 images, 1,000 classes [Tan and Le, 2019, table 1]."""

import torch
from torch import nn
from weights import he

# Expansion, kernel, first stride, outputs and repeats of each stage.
STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]


class SqueezeExcitation(nn.Module):
    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, squeezed, 1),
            nn.SiLU(),
            nn.Conv2d(squeezed, channels, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.gate(x) * x
        return y


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, expansion: int, kernel: int, stride: int, outputs: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        layers: list[nn.Module] = [*convolution(inputs, hidden, 1), nn.SiLU()] if expansion > 1 else []
        layers += [*convolution(hidden, hidden, kernel, stride, hidden), nn.SiLU()]
        layers.append(SqueezeExcitation(hidden, inputs // 4))
        self.layers = nn.Sequential(*layers, *convolution(hidden, outputs, 1))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layers(x)
        return x + y if self.adds else y


def model() -> nn.Module:
    channels = 32
    layers: list[nn.Module] = [*convolution(3, channels, 3, 2), nn.SiLU()]
    for expansion, kernel, stride, outputs, repeats in STAGES:
        for repeat in range(repeats):
            layers.append(Bottleneck(channels, expansion, kernel, 1 if repeat else stride, outputs))
            channels = outputs
    layers += [*convolution(channels, 1280, 1), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return he(nn.Sequential(*layers, nn.Dropout(0.2), nn.Linear(1280, 1000)))


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
