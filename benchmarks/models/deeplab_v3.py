"""DeepLabV3 on a ResNet-50 of output stride 8, 21 classes, 224×224 images [Chen et al., 2017, section 3]."""

import torch
from fcn import CLASSES, Segmentation
from torch import nn

RATES, CHANNELS = (12, 24, 36), 256


def convolution(inputs: int, kernel: int, dilation: int = 1) -> nn.Sequential:
    padding = dilation * (kernel // 2)
    return nn.Sequential(
        nn.Conv2d(inputs, CHANNELS, kernel, 1, padding, dilation, bias=False), nn.BatchNorm2d(CHANNELS), nn.ReLU()
    )


class Pyramid(nn.Module):
    """Atrous spatial pyramid pooling."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList([convolution(inputs, 1), *(convolution(inputs, 3, rate) for rate in RATES)])
        self.pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), convolution(inputs, 1))
        self.project = nn.Sequential(convolution((len(RATES) + 2) * CHANNELS, 1), nn.Dropout(0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        image = nn.functional.interpolate(self.pooled(x), size=x.shape[-2:], mode="bilinear", align_corners=False)
        y: torch.Tensor = self.project(torch.cat([*(branch(x) for branch in self.branches), image], 1))
        return y


def model() -> nn.Module:
    return Segmentation(nn.Sequential(Pyramid(2048), convolution(CHANNELS, 3), nn.Conv2d(CHANNELS, CLASSES, 1)))


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
