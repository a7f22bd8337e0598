"""ResNet-18 for 224×224 images, 1,000 classes, random weights [He et al., 2016, table 1]."""

import torch
from torch import nn


class _Block(nn.Module):
    """Two 3 x 3 convolutions, and what goes past them."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, channels_out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(channels_out),
            nn.ReLU(),
            nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False),
            nn.BatchNorm2d(channels_out),
        )
        self.past = nn.Sequential()
        if stride > 1 or channels_in != channels_out:
            self.past = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride, bias=False), nn.BatchNorm2d(channels_out)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.past(x))


def model() -> nn.Module:
    torch.manual_seed(0)
    blocks: list[nn.Module] = []
    channels = 64
    for width in (64, 128, 256, 512):
        for place in range(2):
            blocks.append(_Block(channels, width, 2 if place == 0 and width > 64 else 1))
            channels = width
    first = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    last = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)]
    return nn.Sequential(*first, *blocks, *last).eval()


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
