"""Down, middle and up block of a diffusion U-Net on 32×32 latents of 320 channels [Rombach et al., 2022]."""

import math

import torch
from torch import nn

CHANNELS, HEADS, TEXT, TOKENS, TIME = 320, 8, 768, 77, 1280


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(32, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1))
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(TIME, outputs))
        self.second = nn.Sequential(nn.GroupNorm(32, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1))
        self.past = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.first(x) + self.time(time)[:, :, None, None]
        return torch.add(self.past(x), self.second(y))


class CrossAttention(nn.Module):
    def __init__(self, width: int, context: int) -> None:
        super().__init__()
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(context, width, bias=False)
        self.v = nn.Linear(context, width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        def heads(tokens: torch.Tensor) -> torch.Tensor:
            return tokens.unflatten(-1, (HEADS, -1)).transpose(1, 2)

        y = nn.functional.scaled_dot_product_attention(heads(self.q(x)), heads(self.k(context)), heads(self.v(context)))
        result: torch.Tensor = self.out(y.transpose(1, 2).flatten(2))
        return result


class GatedMlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 8 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        value, gate = self.up(x).chunk(2, -1)
        result: torch.Tensor = self.down(value * nn.functional.gelu(gate))
        return result


class Spatial(nn.Module):
    """A transformer block over the pixels, with the text as context."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(32, width, eps=1e-6)
        self.enter, self.leave = nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.own, self.cross = CrossAttention(width, width), CrossAttention(width, TEXT)
        self.mlp = GatedMlp(width)

    def forward(self, x: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        tokens = self.enter(self.norm(x)).flatten(2).transpose(1, 2)
        normed = self.norms[0](tokens)
        tokens = tokens + self.own(normed, normed)
        tokens = tokens + self.cross(self.norms[1](tokens), text)
        tokens = tokens + self.mlp(self.norms[2](tokens))
        return torch.add(x, self.leave(tokens.transpose(1, 2).unflatten(-1, x.shape[-2:])))


class Diffusion(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(CHANNELS, TIME), nn.SiLU(), nn.Linear(TIME, TIME))
        self.down, self.down_spatial = Residual(CHANNELS, CHANNELS), Spatial(CHANNELS)
        self.shrink = nn.Conv2d(CHANNELS, CHANNELS, 3, 2, 1)
        self.middle, self.middle_spatial = Residual(CHANNELS, 2 * CHANNELS), Spatial(2 * CHANNELS)
        self.grow = nn.Conv2d(2 * CHANNELS, 2 * CHANNELS, 3, padding=1)
        self.up, self.up_spatial = Residual(3 * CHANNELS, CHANNELS), Spatial(CHANNELS)

    def forward(self, x: torch.Tensor, step: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        half = CHANNELS // 2
        angles = step[:, None] * torch.exp(torch.arange(half) * (-math.log(10_000) / half))[None]
        time = self.time(torch.cat([angles.cos(), angles.sin()], -1))
        kept = self.down_spatial(self.down(x, time), text)
        y = self.middle_spatial(self.middle(self.shrink(kept), time), text)
        y = self.grow(nn.functional.interpolate(y, scale_factor=2.0))
        result: torch.Tensor = self.up_spatial(self.up(torch.cat([y, kept], 1), time), text)
        return result


def model() -> nn.Module:
    return Diffusion()


def example_inputs() -> tuple[torch.Tensor, ...]:
    return torch.randn(1, CHANNELS, 32, 32), torch.tensor([500.0]), torch.randn(1, TOKENS, TEXT)
