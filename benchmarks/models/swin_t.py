"""Swin-T for 224×224 images, windows of 7×7, 1,000 classes [Liu et al., 2021, section 3]."""

import torch
from torch import nn

# Depth and heads of each stage; the width doubles from one to the next.
STAGES = ((2, 3), (2, 6), (6, 12), (2, 24))
WIDTH, WINDOW, SIZE = 96, 7, 56


def windows(x: torch.Tensor) -> torch.Tensor:
    """Return [windows, tokens of a window, …] of an image [1, height, width, …]."""
    size = x.shape[1] // WINDOW
    return x.reshape(size, WINDOW, size, WINDOW, -1).transpose(1, 2).reshape(size * size, WINDOW * WINDOW, -1)


def relative_positions() -> torch.Tensor:
    """Return which entry of the table of biases each pair of tokens has."""
    at = torch.stack(torch.meshgrid(torch.arange(WINDOW), torch.arange(WINDOW), indexing="ij")).flatten(1)
    distance = at[:, :, None] - at[:, None, :] + WINDOW - 1
    return distance[0] * (2 * WINDOW - 1) + distance[1]


class WindowAttention(nn.Module):
    def __init__(self, width: int, heads: int, size: int, shift: int) -> None:
        super().__init__()
        self.heads, self.size, self.shift = heads, size, shift
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.bias = nn.Parameter(torch.zeros((2 * WINDOW - 1) ** 2, heads))
        self.register_buffer("positions", relative_positions(), persistent=False)
        self.register_buffer("mask", self._mask(), persistent=False)

    def _mask(self) -> torch.Tensor:
        region = torch.zeros(1, self.size, self.size, 1)
        parts = (slice(0, -WINDOW), slice(-WINDOW, -self.shift), slice(-self.shift, None)) if self.shift else ()
        for at, rows in enumerate(parts):
            for beside, columns in enumerate(parts):
                region[:, rows, columns] = 3 * at + beside
        tokens = windows(region).squeeze(-1)
        return torch.where(tokens[:, :, None] == tokens[:, None, :], 0.0, -100.0)[:, None]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        width = x.shape[-1]
        if self.shift:
            x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        tokens = windows(x)
        q, k, v = self.qkv(tokens).reshape(*tokens.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        bias = self.bias[self.positions].permute(2, 0, 1)
        scores = q * (width // self.heads) ** -0.5 @ k.transpose(-2, -1) + bias
        if self.shift:
            scores = scores + self.mask
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(tokens.shape)
        size = self.size // WINDOW
        y = self.project(y).reshape(size, size, WINDOW, WINDOW, width).transpose(1, 2)
        y = y.reshape(1, self.size, self.size, width)
        return torch.roll(y, (self.shift, self.shift), (1, 2)) if self.shift else y


class Block(nn.Module):
    def __init__(self, width: int, heads: int, size: int, shift: int) -> None:
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(width), WindowAttention(width, heads, size, shift))
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(x)
        return torch.add(x, self.mlp(x))


class Merging(nn.Module):
    """Four neighbours become one token of twice the width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * width)
        self.reduce = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)]
        y: torch.Tensor = self.reduce(self.norm(torch.cat(parts, -1)))
        return y


class Permute(nn.Module):
    def __init__(self, *order: int) -> None:
        super().__init__()
        self.order = order

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.permute(self.order)


def model() -> nn.Module:
    width, size = WIDTH, SIZE
    layers: list[nn.Module] = [nn.Conv2d(3, width, 4, 4), Permute(0, 2, 3, 1), nn.LayerNorm(width)]
    for stage, (depth, heads) in enumerate(STAGES):
        if stage:
            layers.append(Merging(width))
            width, size = 2 * width, size // 2
        # A window as large as the image is not shifted.
        layers += [Block(width, heads, size, WINDOW // 2 if at % 2 and size > WINDOW else 0) for at in range(depth)]
    layers += [nn.LayerNorm(width), Permute(0, 3, 1, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000)]
    return nn.Sequential(*layers)


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, 224, 224)
