"""VGG-16 for 224×224 images, 1,000 classes [Simonyan and Zisserman, 2015, table 1, column D]."""

import torch
from torch import nn
from weights import he

CHANNELS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


def model() -> nn.Module:
    layers: list[nn.Module] = []
    inputs = 3
    for group in CHANNELS:
        for outputs in group:
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), nn.Linear(512 * 7 * 7, 4096), nn.ReLU(), nn.Dropout()]
    layers += [nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 1000)]
    return he(nn.Sequential(*layers))


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
