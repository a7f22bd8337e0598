"""A small U-Net whose last features go through the head of a DeepLab: everything that decoders of images resize."""

import torch
from torch import nn
from torch.nn import functional


class UNet(nn.Module):
    """Two levels, of which the second is resized to the size of the first, then joined with it."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, padding=1)
        self.bottom = nn.Conv2d(4, 8, 3, padding=1)
        self.up = nn.Conv2d(12, 6, 3, padding=1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """``image[n, 3, y, x]`` to features ``[n, 6, y, x]``."""
        first = torch.relu(self.down(image))
        second = torch.relu(self.bottom(functional.max_pool2d(first, 2)))
        larger = functional.interpolate(second, scale_factor=2, mode="bilinear", align_corners=True)
        return torch.relu(self.up(torch.cat([first, larger], dim=1)))


class AtrousPyramid(nn.Module):
    """The head of DeepLab v3: convolutions of several dilations beside the mean of the image, resized to its size."""

    def __init__(self) -> None:
        super().__init__()
        self.near = nn.Conv2d(6, 4, 1)
        self.far = nn.Conv2d(6, 4, 3, padding=2, dilation=2)
        self.mean = nn.Conv2d(6, 4, 1)
        self.classes = nn.Conv2d(12, 5, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """``features[n, 6, y, x]`` to ``[n, 5, 2y, 2x]``."""
        mean = self.mean(functional.adaptive_avg_pool2d(features, 1))
        wide = functional.interpolate(mean, size=features.shape[-2:], mode="bilinear", align_corners=False)
        found = self.classes(torch.cat([self.near(features), self.far(features), wide], dim=1))
        return functional.interpolate(found, size=(20, 24), mode="bicubic", align_corners=False)


def model() -> nn.Module:
    """Return the model."""
    torch.manual_seed(0)
    return nn.Sequential(UNet(), nn.AvgPool2d(2), AtrousPyramid())


def example_inputs() -> tuple[torch.Tensor, ...]:
    """Return one image."""
    return (torch.randn(1, 3, 16, 20),)
