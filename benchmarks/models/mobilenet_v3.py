"""MobileNetV3-Large for 224×224 images, 1,000 classes [Howard et al., 2019, table 1]."""

import torch
from torch import nn
from weights import he

# Kernel, hidden channels, outputs, squeeze and excitation, hard swish, stride of each bottleneck.
BOTTLENECKS = (
    (3, 16, 16, False, False, 1),
    (3, 64, 24, False, False, 2),
    (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2),
    (5, 120, 40, True, False, 1),
    (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2),
    (3, 200, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 480, 112, True, True, 1),
    (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2),
    (5, 960, 160, True, True, 1),
    (5, 960, 160, True, True, 1),
)


def multiple_of_8(channels: float) -> int:
    near = max(8, int(channels + 4) // 8 * 8)
    return near + 8 if near < 0.9 * channels else near


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs, eps=1e-3),
    ]


class SqueezeExcitation(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        squeezed = multiple_of_8(channels / 4)
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, squeezed, 1), nn.ReLU(), nn.Conv2d(squeezed, channels, 1)
        )
        self.hard_sigmoid = nn.Hardsigmoid()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.hard_sigmoid(self.gate(x)) * x
        return y


class Bottleneck(nn.Module):
    def __init__(self, kernel: int, inputs: int, hidden: int, outputs: int, kind: tuple[bool, bool], stride: int):
        super().__init__()
        squeezes, hard = kind
        activation = nn.Hardswish if hard else nn.ReLU
        layers: list[nn.Module] = []
        if hidden != inputs:
            layers += [*convolution(inputs, hidden, 1), activation()]
        layers += [*convolution(hidden, hidden, kernel, stride, hidden), activation()]
        if squeezes:
            layers.append(SqueezeExcitation(hidden))
        self.layers = nn.Sequential(*layers, *convolution(hidden, outputs, 1))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layers(x)
        return x + y if self.adds else y


def model() -> nn.Module:
    channels = 16
    layers: list[nn.Module] = [*convolution(3, channels, 3, 2), nn.Hardswish()]
    for kernel, hidden, outputs, squeezes, hard, stride in BOTTLENECKS:
        layers.append(Bottleneck(kernel, channels, hidden, outputs, (squeezes, hard), stride))
        channels = outputs
    layers += [*convolution(channels, 960, 1), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    layers += [nn.Linear(960, 1280), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(1280, 1000)]
    return he(nn.Sequential(*layers))


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
