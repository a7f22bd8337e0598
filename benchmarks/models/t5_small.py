"""T5-small of `transformers`: 64 tokens encoded, 16 decoded, random weights; needs `pip install transformers`."""

import torch
from torch import nn
from transformers import T5Config, T5ForConditionalGeneration

ENCODED, DECODED = 64, 16
VOCABULARY = 32128


class T5(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.t5 = T5ForConditionalGeneration(
            T5Config(
                vocab_size=VOCABULARY,
                d_model=512,
                d_kv=64,
                d_ff=2048,
                num_layers=6,
                num_heads=8,
                decoder_start_token_id=0,
                attn_implementation="eager",
            )
        )

    def forward(self, tokens: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.t5(input_ids=tokens, decoder_input_ids=answer, use_cache=False).logits
        return logits


def model() -> nn.Module:
    return T5()


def example_inputs() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randint(0, VOCABULARY, (1, ENCODED)), torch.randint(0, VOCABULARY, (1, DECODED))
