"""A decoder layer of a transformer: 8 heads of 64, causal, 32 tokens beside 32 encoded [Vaswani et al., 2017]."""

import torch
from torch import nn

TOKENS, WIDTH = 32, 512


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(WIDTH, 8, 2048, batch_first=True)

    def forward(self, tokens: torch.Tensor, encoded: torch.Tensor) -> torch.Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(TOKENS)
        result: torch.Tensor = self.layer(tokens, encoded, tgt_mask=mask, tgt_is_causal=True)
        return result


def model() -> nn.Module:
    return Decoder()


def example_inputs() -> tuple[torch.Tensor, ...]:
    return torch.randn(4, TOKENS, WIDTH), torch.randn(4, TOKENS, WIDTH)
