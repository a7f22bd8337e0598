"""BERT-base of `transformers`, 128 tokens, random weights; needs `pip install transformers`."""

import torch
from torch import nn
from transformers import BertConfig, BertModel

TOKENS = 128


class Bert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bert = BertModel(BertConfig(attn_implementation="eager"))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        state: torch.Tensor = self.bert(tokens).last_hidden_state
        return state


def model() -> nn.Module:
    return Bert()


def example_inputs() -> torch.Tensor:
    return torch.randint(0, 30522, (1, TOKENS))
