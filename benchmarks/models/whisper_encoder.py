"""The encoder of Whisper tiny of `transformers`: 30 s of 80 mel bands.

Needs `pip install transformers`.
"""

import torch
from torch import nn
from transformers import WhisperConfig
from transformers.models.whisper.modeling_whisper import WhisperEncoder

BANDS, FRAMES = 80, 3000


class Whisper(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = WhisperEncoder(
            WhisperConfig(
                num_mel_bins=BANDS,
                d_model=384,
                encoder_layers=4,
                encoder_attention_heads=6,
                encoder_ffn_dim=1536,
                attn_implementation="eager",
            )
        )

    def forward(self, spectrum: torch.Tensor) -> torch.Tensor:
        state: torch.Tensor = self.encoder(spectrum).last_hidden_state
        return state


def model() -> nn.Module:
    return Whisper()


def example_inputs() -> torch.Tensor:
    return torch.randn(1, BANDS, FRAMES)
