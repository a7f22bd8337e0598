"""FCN on a ResNet-50 of output stride 8, 21 classes, 224×224 images [Long et al., 2015; Chen et al., 2017]."""

import torch
from torch import nn

CLASSES = 21
# Width, depth, stride of the first block, its dilation and that of the others.
STAGES = ((64, 3, 1, 1, 1), (128, 4, 2, 1, 1), (256, 6, 1, 1, 2), (512, 3, 1, 2, 4))


class Block(nn.Module):
    """A 1 x 1, a dilated 3 x 3 and a 1 x 1 convolution to four times the channels, and what goes past them."""

    def __init__(self, inputs: int, width: int, stride: int, dilation: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, dilation, dilation, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.past = nn.Sequential()
        if stride > 1 or inputs != outputs:
            self.past = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.past(x))


def backbone() -> nn.Sequential:
    """Return a ResNet-50, its last two stages dilated instead of strided: 2,048 channels, an eighth of the size."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    channels = 64
    for width, depth, stride, first, dilation in (
        (64, 3, 1, 1, 1),
        (128, 4, 2, 1, 1),
        (256, 6, 1, 1, 2),
        (512, 3, 1, 2, 4),
    ):
        for at in range(depth):
            layers.append(Block(channels, width, 1 if at else stride, dilation if at else first))
            channels = 4 * width
    return nn.Sequential(*layers)


class Segmentation(nn.Module):
    """A class per pixel: features, scores at an eighth of the size, and these in full size."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.features = backbone()
        self.head = head

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        scores = self.head(self.features(images))
        return nn.functional.interpolate(scores, size=images.shape[-2:], mode="bilinear", align_corners=False)


def model() -> nn.Module:
    head = nn.Sequential(
        nn.Conv2d(2048, 512, 3, padding=1, bias=False),
        nn.BatchNorm2d(512),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Conv2d(512, CLASSES, 1),
    )
    return Segmentation(head)


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
