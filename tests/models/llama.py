"""A decoder as of Llama: shared keys and values, rotary embedding, normalisation by the root mean square, a cache."""

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, HIDDEN, HEADS, GROUPS, LAYERS, PAST = 96, 64, 4, 2, 2, 5
WIDTH = HIDDEN // HEADS


def rotated(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return x * angles.cos() + turned * angles.sin()


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.RMSNorm(HIDDEN, eps=1e-6), nn.RMSNorm(HIDDEN, eps=1e-6)])
        self.query = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.key, self.value = (nn.Linear(HIDDEN, GROUPS * WIDTH, bias=False) for _ in range(2))
        self.output = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.gate, self.up = (nn.Linear(HIDDEN, 2 * HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * HIDDEN, HIDDEN, bias=False)

    def forward(
        self, x: torch.Tensor, angles: torch.Tensor, past_keys: torch.Tensor, past_values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        batch, length, _ = x.shape
        read = self.norms[0](x)
        q, k, v = (
            projection(read).view(batch, length, heads, WIDTH).transpose(1, 2)
            for projection, heads in ((self.query, HEADS), (self.key, GROUPS), (self.value, GROUPS))
        )
        keys = torch.cat((past_keys, rotated(k, angles)), dim=2)
        values = torch.cat((past_values, v), dim=2)
        shared = (each.repeat_interleave(HEADS // GROUPS, dim=1) for each in (keys, values))
        mixed = functional.scaled_dot_product_attention(rotated(q, angles), *shared)
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, length, HIDDEN))
        read = self.norms[1](x)
        return x + self.down(functional.silu(self.gate(read)) * self.up(read)), keys, values


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.norm = nn.RMSNorm(HIDDEN, eps=1e-6)

    def forward(self, token: torch.Tensor, place: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        frequencies = 10000 ** (-torch.arange(0, WIDTH, 2) / WIDTH)
        angles = (place[:, None] * frequencies).repeat(1, 2)
        x, caches = self.embedding(token), []
        for number, layer in enumerate(self.layers):
            x, keys, values = layer(x, angles, past[2 * number], past[2 * number + 1])
            caches += [keys, values]
        return self.norm(x) @ self.embedding.weight.T, *caches


def model() -> nn.Module:
    torch.manual_seed(0)
    return Llama().eval()


def example_inputs() -> tuple[torch.Tensor, ...]:
    past = [torch.randn(1, GROUPS, PAST, WIDTH) for _ in range(2 * LAYERS)]
    return torch.randint(0, VOCABULARY, (1, 1)), torch.tensor([PAST]), *past
