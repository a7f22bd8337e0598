"""Formats of tensors: published sizes, configurations that state them, and bytes of caches."""

from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import read_configuration, read_model, shipped_names
from dfcompile.language_models.footprint import kv_bytes, weight_bytes
from dfcompile.language_models.formats import FORMATS, NumberFormat, uniform, with_dtypes
from dfcompile.language_models.parameters import kv_elements_per_token, parameters_of
from dfcompile.language_models.quantisation import precision_of
from dfcompile.language_models.steps.batch import decode_batch, prefill_batch
from dfcompile.language_models.study import Request, study_of
from dfcompile.records import replace

BF16 = uniform(FORMATS["bf16"])
# As the published files have it.
MXFP4 = {
    "quant_method": "mxfp4",
    "modules_to_not_convert": [
        "model.layers.*.self_attn",
        "model.layers.*.mlp.router",
        "model.embed_tokens",
        "lm_head",
    ],
}
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic", "fmt": "e4m3"}
PUBLISHED = {"gpt-oss-120b": MXFP4, "gpt-oss-20b": MXFP4, "deepseek-v3": FP8, "deepseek-r1": FP8, "kimi-k2": FP8}


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_configurations_say_what_the_published_ones_say(name: str) -> None:
    assert read_configuration(name).values.get("quantization_config") == PUBLISHED.get(name)


@pytest.mark.parametrize(("name", "gib"), [("gpt-oss-120b", 60.77), ("gpt-oss-20b", 12.82)])
def test_p6_experts_in_mxfp4_are_the_published_sizes(name: str, gib: float) -> None:
    precision, _ = precision_of(read_configuration(name).values, name)

    assert round(weight_bytes(read_model(name), precision) / 2**30, 2) == gib


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gpt2", "mixtral-8x7b", "deepseek-v3", "gemma-2-9b", "gpt-oss-20b"])
def test_trap_t17_sixteen_bits_are_two_bytes_per_parameter(name: str) -> None:
    model = read_model(name)

    assert weight_bytes(model, BF16) == 2 * parameters_of(model).total
    assert kv_bytes(model, prefill_batch("64x3"), BF16) == 2 * 3 * 64 * kv_elements_per_token(model)


def test_8192_tokens_of_llama_8b_are_a_gibibyte_and_deepseeks_160k_11() -> None:
    assert kv_bytes(read_model("llama-3.1-8b"), prefill_batch("8192"), BF16) == 2**30
    assert round(kv_bytes(read_model("deepseek-v3"), prefill_batch("163840"), BF16) / 2**30, 2) == 10.72


def test_p1_blocks_round_up_and_a_prefix_is_held_once() -> None:
    model = read_model("llama-3.1-8b")
    plain, blocks, shared = (
        kv_bytes(model, decode_batch("1001x8"), BF16, block=block, shared_prefix=prefix) // 131_072
        for block, prefix in ((1, 0), (16, 0), (16, 1000))
    )

    assert (plain, blocks, shared) == (8008, 8 * 1008, 8 * 16 + 992)


STATED: tuple[tuple[dict[str, object], NumberFormat], ...] = (
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, NumberFormat("fp8", 8, 16_384, 32)),
    ({"quant_method": "fp8"}, FORMATS["fp8"]),
    ({"quant_method": "awq", "bits": 4, "group_size": 128}, NumberFormat("int4", 4, 128, 20)),
    ({"quant_method": "gptq", "bits": 8, "group_size": -1}, NumberFormat("int8", 8)),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, FORMATS["int8"]),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, NumberFormat("int4", 4, 64, 32)),
    (
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}},
        },
        FORMATS["fp8"],
    ),
    (
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 64}}},
        },
        NumberFormat("int4", 4, 64, 16),
    ),
)


@pytest.mark.parametrize(("stated", "expected"), STATED)
def test_p6_formats_that_configurations_state(stated: dict[str, object], expected: NumberFormat) -> None:
    precision, notes = precision_of({"torch_dtype": "float16", "quantization_config": stated}, "x")

    assert (precision.attention, precision.mlp, precision.experts) == (expected, expected, expected)
    assert (precision.head.name, precision.kv.name) == ("fp16", "fp16")
    assert len(notes) == 1


BAD: tuple[tuple[dict[str, object], str], ...] = (
    ({"dtype": "float8"}, "key 'dtype': found 'float8' against bfloat16"),
    ({"quantization_config": 3}, "key 'quantization_config': found 3 against a mapping"),
    ({"quantization_config": {"quant_method": "odd"}}, "unknown quant_method 'odd' against awq"),
    ({"quantization_config": {"quant_method": "awq", "bits": "4"}}, "found '4' against a whole number"),
    (
        {"quantization_config": {"quant_method": "compressed-tensors"}},
        "key 'quantization_config.config_groups': found None against a mapping",
    ),
)


@pytest.mark.parametrize(("values", "message"), BAD)
def test_what_is_not_understood_is_refused(values: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        precision_of(values, "x")


def test_dtypes_by_class() -> None:
    made = with_dtypes(BF16, "w=fp8,head=bf16,kv=fp8")

    assert made.summary == "w=fp8,head=bf16,a=bf16,kv=fp8"
    assert with_dtypes(BF16, "fp16") == uniform(FORMATS["fp16"])
    for text, message in (
        ("x=fp8", "unknown class of tensors 'x'"),
        ("w=fp9", r"unknown number format 'fp9' \(did you mean 'fp8'"),
        ("w=fp8,w=fp8", "found 'w' twice"),
    ):
        with pytest.raises(UserError, match=message):
            with_dtypes(BF16, text)


def test_weights_of_four_bits_multiply_as_activations_do() -> None:
    assert with_dtypes(BF16, "w=int4").product(FORMATS["int4"]) == "bf16"
    assert with_dtypes(BF16, "w=fp32,a=bf16").product(FORMATS["fp32"]) == "fp32"


def test_p6_a_listed_mixed_rate_is_taken_and_nothing_is_widened(tmp_path: Path) -> None:
    sheet = "name,arrays\npeak.bf16 [TFLOP/s],100\n{}memory.bandwidth [TB/s],1000\nenergy.mac.bf16 [pJ],2\n"
    plain, mixed = tmp_path / "plain.csv", tmp_path / "mixed.csv"
    plain.write_text(sheet.format(""))
    mixed.write_text(sheet.format("peak.int4_bf16 [TFLOP/s],300\n"))
    asked = Request("llama-3.1-8b", "", (prefill_batch("4096"),), dtypes="w=int4,a=bf16,kv=bf16,head=bf16")

    wide, pair = (study_of(replace(asked, system=f"{file}:arrays")) for file in (plain, mixed))

    kernels = [
        {one.kernel.name: one for one in study.steps[0].deployment.kernels.kernels if one.kernel.weight_bytes}
        for study in (wide, pair)
    ]
    for name in ("qkv_proj", "down"):
        one, other = (found[name] for found in kernels)
        assert (one.kernel.rate, other.kernel.rate) == ("bf16", "int4_bf16")
        assert one.time.exec_s == pytest.approx(3 * other.time.exec_s)
        assert one.kernel.vector_elements == one.kernel.k * one.kernel.n
        assert other.kernel.vector_elements == 0
        assert pair.device.mac_pj(other.kernel.rate) == 2
    assert kernels[1]["lm_head"].kernel.rate == "bf16"


def compressed(bits: int, kind: str, activations: int, **more: object) -> dict[str, object]:
    scheme: dict[str, object] = {"weights": {"num_bits": bits, "type": kind, **more}, "targets": ["Linear"]}
    if activations:
        scheme["input_activations"] = {"num_bits": activations, "type": kind, "group_size": more.get("group_size")}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": scheme}, "ignore": ["lm_head"]}


def quark(dtype: str, group: int | None, *, inputs: bool) -> dict[str, object]:
    spec = {"dtype": dtype, "group_size": group, "symmetric": True}
    every = {"weight": spec, "input_tensors": spec if inputs else None}
    return {"quant_method": "quark", "global_quant_config": every, "exclude": ["lm_head"]}


def torchao(kind: str, **data: object) -> dict[str, object]:
    return {"quant_method": "torchao", "quant_type": {"default": {"_type": kind, "_data": data}}}


# What is stated, bits of a weight with its scales and zero point, activations, cache.
BITS: tuple[tuple[dict[str, object], float, str, str], ...] = (
    (
        {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"},
        8 + 32 / 128**2,
        "fp8",
        "bf16",
    ),
    ({"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}, 8, "fp8", "bf16"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": False}, 4 + 20 / 32, "bf16", "bf16"),
    ({"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": False}, 4 + 16 / 64, "bf16", "bf16"),
    (
        {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 3, "group_size": 64}}},
        3.5,
        "bf16",
        "bf16",
    ),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4.5, "bf16", "bf16"),
    (
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
        4 + (8 + 32 / 256) / 64,
        "bf16",
        "bf16",
    ),
    (compressed(4, "float", 0, group_size=16, strategy="tensor_group"), 4.5, "bf16", "bf16"),
    (compressed(4, "float", 4, group_size=16), 4.5, "nvfp4", "bf16"),
    (compressed(4, "float", 0, group_size=32, scale_dtype="torch.uint8"), 4.25, "bf16", "bf16"),
    (compressed(8, "int", 8, strategy="channel"), 8, "int8", "bf16"),
    (compressed(4, "int", 0, group_size=128, symmetric=False), 4 + 20 / 128, "bf16", "bf16"),
    ({**compressed(8, "float", 8), "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, 8, "fp8", "fp8"),
    (
        {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "ignore": ["lm_head"]},
        8,
        "fp8",
        "fp8",
    ),
    (
        {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "group_size": 16}},
        4.5,
        "nvfp4",
        "bf16",
    ),
    (
        {"producer": {}, "quantization": {"quant_algo": "W4A16_AWQ", "exclude_modules": ["lm_head"]}},
        4.125,
        "bf16",
        "bf16",
    ),
    (quark("fp8_e4m3", None, inputs=True), 8, "fp8", "bf16"),
    (quark("fp4", 32, inputs=False), 4.25, "bf16", "bf16"),
    (quark("int4", 128, inputs=False), 4.125, "bf16", "bf16"),
    (torchao("Int4WeightOnlyConfig", group_size=64), 4.5, "bf16", "bf16"),
    (torchao("Float8DynamicActivationFloat8WeightConfig"), 8, "fp8", "bf16"),
    ({"quant_method": "torchao", "quant_type": "int8_dynamic_activation_int8_weight"}, 8, "int8", "bf16"),
)


@pytest.mark.parametrize(("stated", "bits", "activations", "kv"), BITS)
def test_every_method_states_bits_activations_and_caches(
    stated: dict[str, object], bits: float, activations: str, kv: str
) -> None:
    precision, _ = precision_of({"dtype": "bfloat16", "quantization_config": stated}, "x")
    elements = 2**20

    assert 8 * precision.mlp.bytes_of(elements) == pytest.approx(bits * elements, rel=1e-9)
    assert (precision.activations.name, precision.kv.name, precision.head.name) == (activations, kv, "bf16")


@pytest.mark.parametrize("stated", [stated for stated, *_ in BITS])
def test_no_key_is_passed_over_in_silence(stated: dict[str, object]) -> None:
    with pytest.raises(UserError, match="unknown key 'quantised_moons'"):
        precision_of({"dtype": "bfloat16", "quantization_config": {**stated, "quantised_moons": 3}}, "x")


NAMED = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")
KEPT: tuple[tuple[list[str], tuple[str, str]], ...] = (
    (["lm_head"], ("int8", "int8")),
    (["re:.*self_attn.*", "lm_head"], ("bf16", "int8")),
    (["*self_attn*"], ("bf16", "int8")),
    (["model.layers.*.mlp"], ("int8", "bf16")),
    (["self_attn"], ("bf16", "int8")),
    ([f"model.layers.{layer}.{name}" for layer in range(3) for name in NAMED], ("bf16", "int8")),
)


@pytest.mark.parametrize(("listed", "expected"), KEPT)
@pytest.mark.parametrize(("method", "key"), [("compressed-tensors", "ignore"), ("fp8", "modules_to_not_convert"),
                                             ("modelopt", "exclude_modules"), ("quark", "exclude")])  # fmt: skip
def test_modules_that_lists_name_stay_as_they_are(
    listed: list[str], expected: tuple[str, str], method: str, key: str
) -> None:
    methods: dict[str, dict[str, object]] = {
        "compressed-tensors": compressed(8, "int", 0),
        "fp8": {"quant_method": "fp8"},
        "modelopt": {"quant_method": "modelopt", "quant_algo": "W8A16"},
        "quark": quark("int8", None, inputs=False),
    }
    stated = methods[method]
    values = {"dtype": "bfloat16", "num_hidden_layers": 3, "quantization_config": {**stated, key: listed}}
    precision, _ = precision_of(values, "x")

    assert (precision.attention.name.replace("fp8", "int8"), precision.mlp.name.replace("fp8", "int8")) == expected


UNMODELLED: tuple[tuple[dict[str, object], str], ...] = (
    ({**compressed(8, "int", 0), "ignore": ["model.layers.1.mlp"]}, "found 3 of 9 mlp modules against all or none"),
    ({**compressed(8, "int", 0), "ignore": ["re:("]}, "found the pattern 're:\\('"),
    ({"quant_method": "gptq", "bits": 4, "dynamic": {"-:.*": {}}}, "dynamic': formats of single modules: not modelled"),
    (
        {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"},
        "quant_algo': found 'MIXED_PRECISION' against one of",
    ),
    ({**quark("int8", None, inputs=False), "layer_quant_config": {"a": {}}}, "layer_quant_config': formats of single"),
    (torchao("AutoQuant"), "quant_type': found 'AutoQuant' against"),
)


@pytest.mark.parametrize(("stated", "message"), UNMODELLED)
def test_what_is_not_modelled_is_named(stated: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        precision_of({"dtype": "bfloat16", "num_hidden_layers": 3, "quantization_config": stated}, "x")
