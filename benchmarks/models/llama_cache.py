"""One token after 127 cached ones through a Llama of `transformers` with two layers; needs `pip install transformers`.

Inputs are the token and the cache of each layer, (batch, heads of keys, tokens, width of a head); outputs are the
logits and the caches with the token's keys and values appended.
"""

import torch
from torch import nn
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

CACHED = 127
VOCABULARY = 4096
LAYERS = 2
KEY_HEADS = 2
HEAD_WIDTH = 64


class CachedLlama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.config = LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=8 * HEAD_WIDTH,
            intermediate_size=1408,
            num_hidden_layers=LAYERS,
            num_attention_heads=8,
            num_key_value_heads=KEY_HEADS,
            attn_implementation="eager",
        )
        self.llama = LlamaForCausalLM(self.config)

    def forward(
        self, token: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        cache = DynamicCache()
        for layer in range(LAYERS):
            cache.update(keys[layer], values[layer], layer)
        logits: torch.Tensor = self.llama(token, past_key_values=cache, use_cache=True).logits
        return (
            logits,
            torch.stack([layer.keys for layer in cache.layers]),
            torch.stack([layer.values for layer in cache.layers]),
        )


def model() -> nn.Module:
    return CachedLlama()


def example_inputs() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    shape = (LAYERS, 1, KEY_HEADS, CACHED, HEAD_WIDTH)
    return torch.randint(0, VOCABULARY, (1, 1)), torch.randn(shape), torch.randn(shape)
