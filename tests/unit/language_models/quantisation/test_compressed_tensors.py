"""``compressed-tensors``."""

import pytest

from dfcompile.errors import UserError
from tests.unit.language_models.quantisation.examples import EXPERTS, Example, Keys, bits, read

FLOAT4 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True}


def compressed(weights: object, activations: object = None, **more: object) -> Keys:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": activations, "output_activations": None}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}, "ignore": ["lm_head"], **more}


def integer(bits: int, **more: object) -> Keys:
    return {"num_bits": bits, "type": "int", **more}


FLOAT8 = {"num_bits": 8, "type": "float"}
TOKENS = {"num_bits": 8, "type": "int", "strategy": "token", "dynamic": True}
EXAMPLES = (
    Example(compressed(FLOAT4, {**FLOAT4, "dynamic": "local"}, format="nvfp4-pack-quantized"), 4.5, "nvfp4"),
    Example(compressed(FLOAT4), 4.5),
    Example(compressed({**FLOAT4, "strategy": "group", "group_size": 32, "scale_dtype": "torch.uint8"}), 4.25),
    Example(compressed(integer(8, strategy="channel"), TOKENS, format="int-quantized"), 8, "int8"),
    Example(compressed(integer(4, group_size=128), TOKENS), 4.125, "int8"),
    Example(compressed(integer(4, group_size=128, symmetric=False, actorder="weight")), 4 + 20 / 128),
    Example(compressed(integer(8, group_size=-1)), 8),
    Example(
        compressed(
            {**FLOAT8, "strategy": "channel", "observer": "minmax", "observer_kwargs": {"a": 1}},
            {**FLOAT8, "strategy": "token", "dynamic": True},
            kv_cache_scheme={**FLOAT8, "strategy": "tensor", "dynamic": False},
            quantization_status="compressed",
            global_compression_ratio=1.4,
            sparsity_config={"format": "dense", "global_sparsity": 0.1, "sparsity_structure": "unstructured"},
            transform_config={},
            version="0.12",
        ),
        8,
        "fp8",
        "fp8",
        free=("quantization_config.config_groups.group_0.weights.observer_kwargs",),
    ),
    Example(compressed({**FLOAT8, "strategy": "block", "block_structure": [128, 128]}), 8 + 16 / 128**2),
    Example(compressed({**FLOAT8, "group_size": 32, "scale_dtype": "torch.uint8"}), 8.25),
    Example(compressed(integer(4, group_size=64), ignore=[]), 4.25, head=4.25),
    Example(compressed(integer(4, group_size=64), ignore=["lm_head", "re:.*self_attn.*"]), 4.25, attention=16),
    Example(
        compressed(
            integer(8, strategy="channel"),
            config_groups={
                "group_0": {"targets": ["Linear"], "weights": integer(4, group_size=128)},
                "group_1": {"targets": [r"re:.*self_attn\.(q|k|v|o)_proj$"], "weights": integer(8)},
            },
        ),
        4.125,
        attention=8,
    ),
    Example(compressed(None, config_groups={}, kv_cache_scheme=integer(4, group_size=64)), 16, kv="int4", head=16),
)


@pytest.mark.parametrize("example", EXAMPLES)
def test_figures(example: Example) -> None:
    example.check()


def test_caches_have_the_scales_that_are_stated() -> None:
    assert bits(read(EXAMPLES[-1].stated)[0].kv) == 4.25
    assert bits(read(compressed(FLOAT8, kv_cache_scheme=integer(4)))[0].kv) == 4


def test_scales_are_of_the_configurations_dtype() -> None:
    assert bits(read(compressed(integer(4, group_size=32)), dtype="float32")[0].mlp) == 5


def test_a_class_is_quantised_where_its_modules_are_named() -> None:
    experts = {"targets": [r"re:.*mlp\.experts.*"], "weights": integer(4, group_size=32)}
    precision, _ = read(compressed(None, config_groups={"group_0": experts}), EXPERTS)

    assert (bits(precision.experts), bits(precision.attention), bits(precision.head)) == (4.5, 16, 16)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (compressed(integer(8), ignore=["model.layers.1.mlp.up_proj"]),
         "quantization_config.ignore': found 1 of 3 mlp modules in bf16, 'model.layers.1.mlp.up_proj' the first"),
        (compressed(integer(8), ignore=["re:("]), r"quantization_config.ignore': found the pattern 're:\('"),
        (compressed(integer(8), format="marlin-24"), "quantization_config.format': found 'marlin-24' against"),
        (compressed(integer(8), sparsity_config={"format": "sparse-24-bitmask"}), "sparsity_config': sparse weights"),
        (compressed(integer(8), transform_config={"config_groups": {"R1": {}}}), "transform_config': products that"),
        (compressed({**integer(8), "dynamic": True}), "group_0.weights.dynamic': weights that are quantised whenever"),
        (compressed({"num_bits": 6, "type": "float"}), "group_0.weights.num_bits': found 6 against 4, 8 bits"),
        (compressed({**integer(8), "strategy": "group"}), "group_0.weights.group_size': found None against the elem"),
        (compressed({**integer(8), "strategy": "channel", "group_size": 8}), "group_size': found 8 against none, as"),
        (compressed({**integer(8), "strategy": "rows"}), "weights.strategy': found 'rows' against tensor, channel"),
        (compressed(integer(8), config_groups={"g": {"weights": None, "input_activations": integer(8)}}),
         "config_groups.g.weights': found None against a format, as input_activations has one"),
        (compressed(integer(8), config_groups={"g": {"weights": integer(8), "output_activations": integer(8)}}),
         "config_groups.g.output_activations': quantised results: not modelled"),
        (compressed(integer(8), config_groups={"g": {"targets": ["LlamaAttention"], "input_activations": FLOAT8}}),
         "config_groups.g.targets': attention with quantised queries"),
        (compressed(integer(8), config_groups={"W8A8": ["Linear"]}), r"groups.W8A8': found \['Linear'\] against a map"),
        (compressed(integer(8), config_groups=None), "config_groups': found None against groups of modules"),
        (
            compressed(
                integer(8),
                config_groups={
                    "a": {"targets": ["Linear"], "weights": integer(8), "input_activations": TOKENS},
                    "b": {"targets": ["re:.*mlp.*"], "weights": integer(8)},
                },
            ),
            "activations in int8 and bf16: not modelled",
        ),
    ],
)  # fmt: skip
def test_what_is_not_modelled_is_named(stated: Keys, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(stated)
