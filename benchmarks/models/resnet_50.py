"""ResNet-50 for 224×224 images, 1,000 classes, random weights [He et al., 2016, table 1]."""

import torch
from torch import nn


class _Block(nn.Module):
    """A 1 x 1, a 3 x 3 and a 1 x 1 convolution to four times the channels, and what goes past them."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        width = channels_out // 4
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, channels_out, 1, bias=False),
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
    for width, depth in ((256, 3), (512, 4), (1024, 6), (2048, 3)):
        for place in range(depth):
            blocks.append(_Block(channels, width, 2 if place == 0 and width > 256 else 1))
            channels = width
    first = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    last = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)]
    return nn.Sequential(*first, *blocks, *last).eval()


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
