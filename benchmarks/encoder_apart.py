"""The encoder layer of "Attention Is All You Need" with a projection each for queries, keys and values."""

import torch
from torch import nn


class EncoderLayer(nn.Module):
    """Attention of 8 heads and two linear layers, each with its residual and normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.queries, self.keys, self.values, self.attended = (nn.Linear(512, 512) for _ in range(4))
        self.up, self.down = nn.Linear(512, 2048), nn.Linear(2048, 512)
        self.first, self.second = nn.LayerNorm(512), nn.LayerNorm(512)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return ``Y[sequence, token, feature]``."""

        def heads(made: torch.Tensor) -> torch.Tensor:
            return made.reshape(*x.shape[:2], 8, 64).transpose(1, 2)

        scores = heads(self.queries(x)) @ heads(self.keys(x)).transpose(-1, -2) / 8.0
        attended = (torch.softmax(scores, -1) @ heads(self.values(x))).transpose(1, 2).reshape(x.shape)
        x = self.first(x + self.attended(attended))
        return torch.as_tensor(self.second(x + self.down(torch.relu(self.up(x)))))


def model() -> nn.Module:
    """Return the layer with random weights."""
    return EncoderLayer()


def example_inputs() -> torch.Tensor:
    """Return 10 sequences of 32 tokens."""
    return torch.randn(10, 32, 512)
