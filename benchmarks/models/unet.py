"""U-Net for 256×256 images with padded convolutions, two classes [Ronneberger et al., 2015, figure 1]."""

import torch
from torch import nn

WIDTHS = (64, 128, 256, 512, 1024)


def double(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(double(a, b) for a, b in zip((3, *WIDTHS[:-1]), WIDTHS, strict=True))
        pairs = list(zip(WIDTHS[:0:-1], WIDTHS[-2::-1], strict=True))
        self.grow = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.up = nn.ModuleList(double(a, b) for a, b in pairs)
        self.classes = nn.Conv2d(WIDTHS[0], 2, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        kept = [self.down[0](images)]
        for layer in self.down[1:]:
            kept.append(layer(nn.functional.max_pool2d(kept[-1], 2)))
        x = kept.pop()
        for grow, layer in zip(self.grow, self.up, strict=True):
            x = layer(torch.cat([kept.pop(), grow(x)], 1))
        scores: torch.Tensor = self.classes(x)
        return scores


def model() -> nn.Module:
    return UNet()


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 256, 256)
