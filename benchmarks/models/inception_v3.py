"""Inception v3 for 299×299 images, 1,000 classes, without the auxiliary head [Szegedy et al., 2016, table 1]."""

import torch
from torch import nn
from weights import he

Kernel = int | tuple[int, int]


def convolution(inputs: int, outputs: int, kernel: Kernel = 1, stride: int = 1, padding: Kernel = 0) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False), nn.BatchNorm2d(outputs, eps=1e-3), nn.ReLU()
    )


class Branches(nn.Module):
    """Branches side by side; their results concatenated."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


def pooled(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), convolution(inputs, outputs))


def grid_35(inputs: int, pool: int) -> Branches:
    return Branches(
        convolution(inputs, 64),
        nn.Sequential(convolution(inputs, 48), convolution(48, 64, 5, padding=2)),
        nn.Sequential(convolution(inputs, 64), convolution(64, 96, 3, padding=1), convolution(96, 96, 3, padding=1)),
        pooled(inputs, pool),
    )


def grid_17(inputs: int, middle: int) -> Branches:
    row: tuple[tuple[int, int], tuple[int, int]] = ((1, 7), (0, 3))
    column: tuple[tuple[int, int], tuple[int, int]] = ((7, 1), (3, 0))
    return Branches(
        convolution(inputs, 192),
        nn.Sequential(
            convolution(inputs, middle),
            convolution(middle, middle, row[0], 1, row[1]),
            convolution(middle, 192, column[0], 1, column[1]),
        ),
        nn.Sequential(
            convolution(inputs, middle),
            convolution(middle, middle, column[0], 1, column[1]),
            convolution(middle, middle, row[0], 1, row[1]),
            convolution(middle, middle, column[0], 1, column[1]),
            convolution(middle, 192, row[0], 1, row[1]),
        ),
        pooled(inputs, 192),
    )


def crossed() -> Branches:
    return Branches(convolution(384, 384, (1, 3), 1, (0, 1)), convolution(384, 384, (3, 1), 1, (1, 0)))


def grid_8(inputs: int) -> Branches:
    return Branches(
        convolution(inputs, 320),
        nn.Sequential(convolution(inputs, 384), crossed()),
        nn.Sequential(convolution(inputs, 448), convolution(448, 384, 3, padding=1), crossed()),
        pooled(inputs, 192),
    )


def model() -> nn.Module:
    return he(
        nn.Sequential(
            convolution(3, 32, 3, 2),
            convolution(32, 32, 3),
            convolution(32, 64, 3, padding=1),
            nn.MaxPool2d(3, 2),
            convolution(64, 80),
            convolution(80, 192, 3),
            nn.MaxPool2d(3, 2),
            grid_35(192, 32),
            grid_35(256, 64),
            grid_35(288, 64),
            Branches(
                convolution(288, 384, 3, 2),
                nn.Sequential(convolution(288, 64), convolution(64, 96, 3, padding=1), convolution(96, 96, 3, 2)),
                nn.MaxPool2d(3, 2),
            ),
            grid_17(768, 128),
            grid_17(768, 160),
            grid_17(768, 160),
            grid_17(768, 192),
            Branches(
                nn.Sequential(convolution(768, 192), convolution(192, 320, 3, 2)),
                nn.Sequential(
                    convolution(768, 192),
                    convolution(192, 192, (1, 7), 1, (0, 3)),
                    convolution(192, 192, (7, 1), 1, (3, 0)),
                    convolution(192, 192, 3, 2),
                ),
                nn.MaxPool2d(3, 2),
            ),
            grid_8(1280),
            grid_8(2048),
            nn.AdaptiveAvgPool2d(1),
            nn.Dropout(),
            nn.Flatten(),
            nn.Linear(2048, 1000),
        )
    )


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 299, 299)
