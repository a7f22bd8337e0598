"""ConvNeXt-T for 224×224 images, 1,000 classes [Liu et al., 2022, section 2 and table 9]."""

import torch
from torch import nn

STAGES = ((96, 3), (192, 3), (384, 9), (768, 3))


class LayerNorm2d(nn.LayerNorm):
    """Of the channels of an image."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.mlp = nn.Sequential(
            nn.LayerNorm(channels, eps=1e-6),
            nn.Linear(channels, 4 * channels),
            nn.GELU(),
            nn.Linear(4 * channels, channels),
        )
        self.scale = nn.Parameter(torch.full((channels, 1, 1), 1e-6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.mlp(self.depthwise(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return x + self.scale * y


def model() -> nn.Module:
    channels = STAGES[0][0]
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 4, 4), LayerNorm2d(channels, eps=1e-6)]
    for outputs, repeats in STAGES:
        if outputs != channels:
            layers += [LayerNorm2d(channels, eps=1e-6), nn.Conv2d(channels, outputs, 2, 2)]
            channels = outputs
        layers += [Block(channels) for _ in range(repeats)]
    layers += [nn.AdaptiveAvgPool2d(1), LayerNorm2d(channels, eps=1e-6), nn.Flatten(), nn.Linear(channels, 1000)]
    return nn.Sequential(*layers)


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
