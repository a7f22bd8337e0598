"""ViT-B/16 for 224×224 images: 12 layers of 768, 12 heads, 1,000 classes [Dosovitskiy et al., 2021, table 1]."""

import torch
from torch import nn

IMAGE, PATCH, WIDTH, HEADS, MLP, LAYERS, CLASSES = 224, 16, 768, 12, 3072, 12, 1000


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.ln_2 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, MLP), nn.GELU(), nn.Linear(MLP, WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.ln_1(x)
        x = x + self.attention(normed, normed, normed, need_weights=False)[0]
        return torch.add(x, self.mlp(self.ln_2(x)))


class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, stride=PATCH)
        self.class_token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.positions = nn.Parameter(torch.randn(1, (IMAGE // PATCH) ** 2 + 1, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.ln = nn.LayerNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token, x], dim=1) + self.positions
        x = self.ln(self.blocks(x))
        logits: torch.Tensor = self.head(x[:, 0])
        return logits


def model() -> nn.Module:
    return VisionTransformer()


def example_inputs() -> torch.Tensor:
    return torch.randn(1, 3, IMAGE, IMAGE)
