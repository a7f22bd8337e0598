"""Two branches over a non-square picture, softmax and log-softmax over a middle axis, concatenation, two outputs."""

import torch
from torch import nn
from torch.nn import functional


class MiddleSoftmax(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Conv2d(2, 3, (1, 5), padding=(0, 2), stride=2)
        self.tall = nn.Conv2d(2, 4, (5, 1), padding=(2, 0), stride=2)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        both = torch.cat([torch.tanh(self.wide(x)), self.tall(x) + bias], dim=1)
        chosen = torch.softmax(both, dim=1)
        pooled = functional.avg_pool2d(functional.pad(chosen, (1, 0, 0, 2)), 3, stride=2)
        return chosen[:, 1:6, :, ::2] * 2.0, functional.log_softmax(pooled, dim=2)


def model() -> nn.Module:
    return MiddleSoftmax()


def example_inputs() -> tuple[torch.Tensor, ...]:
    return torch.randn(2, 2, 9, 14), torch.randn(4, 1, 7)
