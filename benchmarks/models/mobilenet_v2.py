"""MobileNetV2 for 224×224 images, width 1.0, 1,000 classes [Sandler et al., 2018, table 2]."""

import torch
from torch import nn
from weights import he

# Expansion, channels, repeats and first stride of each group of bottlenecks.
BOTTLENECKS = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU6(),
    )


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, outputs: int, expansion: int, stride: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        self.adds = stride == 1 and inputs == outputs
        self.layers = nn.Sequential(
            *([convolution(inputs, hidden, 1)] if expansion > 1 else []),
            convolution(hidden, hidden, 3, stride, groups=hidden),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layers(x)
        return x + y if self.adds else y


class MobileNetV2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        channels = 32
        layers: list[nn.Module] = [convolution(3, channels, 3, 2)]
        for expansion, outputs, repeats, stride in BOTTLENECKS:
            for repeat in range(repeats):
                layers.append(Bottleneck(channels, outputs, expansion, stride if repeat == 0 else 1))
                channels = outputs
        self.features = nn.Sequential(*layers, convolution(channels, 1280, 1))
        self.classifier = nn.Linear(1280, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.classifier(self.features(images).mean([2, 3]))
        return logits


def model() -> nn.Module:
    return he(MobileNetV2())


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
