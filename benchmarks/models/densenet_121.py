"""DenseNet-121 for 224×224 images, growth 32, 1,000 classes [Huang et al., 2017, table 1]."""

import torch
from torch import nn
from weights import he

GROWTH, LAYERS = 32, (6, 12, 24, 16)


class Layer(nn.Module):
    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.BatchNorm2d(inputs),
            nn.ReLU(),
            nn.Conv2d(inputs, 4 * GROWTH, 1, bias=False),
            nn.BatchNorm2d(4 * GROWTH),
            nn.ReLU(),
            nn.Conv2d(4 * GROWTH, GROWTH, 3, padding=1, bias=False),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, self.layers(x)], 1)


def model() -> nn.Module:
    channels = 2 * GROWTH
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 7, 2, 3, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    for at, count in enumerate(LAYERS):
        if at:
            layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, channels // 2, 1, bias=False)]
            layers.append(nn.AvgPool2d(2))
            channels //= 2
        for _ in range(count):
            layers.append(Layer(channels))
            channels += GROWTH
    layers += [nn.BatchNorm2d(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)]
    return he(nn.Sequential(*layers))


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
