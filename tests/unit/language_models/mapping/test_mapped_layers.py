"""Layers of language models in the back end: the same work and bytes, fused and sharded as any other graph."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend import DataflowGraph, TensorKind
from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import read_model
from dfcompile.language_models.formats import FORMATS, uniform, with_dtypes
from dfcompile.language_models.machines.finding import find_device, shipped_devices
from dfcompile.language_models.mapping.layer_graph import layer_graph
from dfcompile.language_models.mapping.mapped_layers import MappedStep, find_system, least_bytes, mapped_step, system_of
from dfcompile.language_models.model import Attention, DenseMlp, Layer, Mask, Model, Reach
from dfcompile.language_models.parallel.deployment import Case
from dfcompile.language_models.steps.batch import Batch, Sequences, decode_batch, prefill_batch
from dfcompile.language_models.steps.kernel import Fusion, StepChoices
from dfcompile.language_models.steps.step import step_of
from dfcompile.language_models.times.step_time import roofline
from dfcompile.records import replace

BF16 = uniform(FORMATS["bf16"])
CHOICES = StepChoices()
DENSE = ("llama-3.1-8b", "gpt2", "gemma-3-1b", "qwen3-0.6b", "qwen2.5-72b")


def graphs(name: str, batch: Batch) -> list[DataflowGraph]:
    model = read_model(name)
    return [layer_graph(kind.name, kind.layer, model.hidden, batch, BF16, CHOICES) for kind in model.kinds]


def macs(graph: DataflowGraph) -> int:
    return sum(kernel.outer * kernel.m * kernel.k * kernel.n for kernel in graph.kernels if kernel.variant.is_gemm)


def mapped(name: str, batch: Batch, chips: int = 1, system: str = "h100-sxm") -> MappedStep:
    device, _ = find_device(system)
    return mapped_step(system, Case(read_model(name), batch, device, BF16, CHOICES, roofline), chips)


@pytest.mark.parametrize("name", [*DENSE, "deepseek-v3"])
def test_a_decoded_layer_multiplies_as_the_closed_form_says(name: str) -> None:
    model, batch = read_model(name), decode_batch("300x4")
    kernels = step_of(model, batch, BF16, CHOICES).kernels
    for kind, graph in zip(model.kinds, graphs(name, batch), strict=True):
        if isinstance(kind.layer.mlp, DenseMlp):
            assert macs(graph) == sum(one.macs for one in kernels if one.part == kind.name)


@given(
    st.integers(1, 3), st.integers(1, 9), st.integers(1, 4), st.integers(0, 40), st.integers(1, 30), st.integers(1, 5)
)
def test_any_small_layer_has_the_work_and_the_borders_of_its_own_formulas(
    kv: int, dim: int, grouped: int, past: int, new: int, count: int
) -> None:
    hidden, width = 8 * kv, 24
    layer = Layer(Attention(kv * grouped, kv, dim, dim, Reach(Mask.WINDOW, 16)), DenseMlp(width))
    group = Sequences(past, new, count)
    graph = layer_graph("layer", layer, hidden, Batch("step", (group,)), BF16, CHOICES)
    tokens, live = count * new, past + new - max(0, past - 15)
    seen = -(-sum(min(at + 1, 16) for at in range(past, past + new)) // new)
    projected = hidden * dim * kv * (2 * grouped + 2)
    cached = 2 * count * live * kv * dim if past else 0

    assert macs(graph) == tokens * (projected + 3 * hidden * width + 2 * kv * grouped * dim * seen)
    borders = 2 * tokens * hidden + projected + 3 * hidden * width + 2 * tokens * kv * dim + cached
    assert least_bytes(graph) == 2 * borders
    assert all(kernel.loops for kernel in graph.kernels if max(kernel.outer, kernel.m, kernel.n) > 1 and tokens > 1)


@pytest.mark.parametrize("name", ["qwen3-0.6b", "mixtral-8x7b"])
def test_a_mapping_lies_between_the_least_bytes_and_kernels_without_fusion(name: str) -> None:
    batch = decode_batch("1024x4")
    found = mapped(name, batch)
    fused = step_of(read_model(name), batch, BF16, StepChoices(fusion=Fusion.FULL))
    part = found.parts[0]

    assert part.mapping is not None
    figures = part.mapping.figures
    assert part.least_bytes <= figures.dram_bytes <= part.least_bytes * 1.01
    assert figures.time_s >= part.least_bytes / 3.35e12
    assert found.time_s is not None
    assert found.time_s == pytest.approx(fused.total("bytes") / 3.35e12, rel=0.02)
    assert len(figures.configs) < len(part.graph.kernels)


def test_scores_of_a_prompt_stay_on_the_chip_by_fusion() -> None:
    (part, _) = mapped("llama-3.1-8b", prefill_batch("4096")).parts
    scores = next(tensor for tensor in part.graph.tensors if tensor.name == "scores")

    assert part.mapping is not None
    (fused,) = (one for one in part.mapping.figures.configs if "softmax" in one.kernels)
    assert {"attention_scores", "softmax", "attention_values"} <= set(fused.kernels)
    assert fused.dram_read_bytes + fused.dram_write_bytes < scores.size_bytes / 2


def test_several_chips_share_a_layer_as_tensor_parallelism_does() -> None:
    model = read_model("qwen2.5-72b")
    small = replace(model, layers=model.layers[:1], vocabulary=1024)
    device = shipped_devices()["h100-sxm"]
    case = Case(small, decode_batch("1024"), device, BF16, CHOICES, roofline)
    parts = [mapped_step("h100-sxm", case, chips).parts[0] for chips in (1, 2)]
    one, two = (part.mapping for part in parts)

    assert one is not None
    assert two is not None
    assert 0.97 <= 2 * two.figures.time_s / one.figures.time_s <= 1.05
    assert two.figures.dram_bytes <= one.figures.dram_bytes * 1.01
    assert (two.chips, parts[0].sharding) == (2, {})
    assert {parts[1].sharding[name] for name in ("q_proj", "k_proj", "attention_scores", "o_proj")} == {("v",)}
    assert {parts[1].sharding[name] for name in ("gate_up", "activation", "down")} == {("i",)}


def test_experts_are_split_over_chips() -> None:
    model = Model("tiny", "mixtral", 64, 100, read_model("mixtral-8x7b").layers[:1], tied=True)
    device = shipped_devices()["h100-sxm"]
    case = Case(model, decode_batch("64x8"), device, BF16, CHOICES, roofline)
    one, two = (mapped_step("h100-sxm", case, chips).parts[0].mapping for chips in (1, 2))

    assert one is not None
    assert two is not None
    assert two.figures.dram_bytes <= one.figures.dram_bytes * 1.05  # of all chips: nothing is held twice
    assert two.figures.time_s <= one.figures.time_s / 1.8


def test_weights_of_four_bits_have_their_bytes_and_are_split() -> None:
    precision = with_dtypes(BF16, "w=mxfp4")
    model = read_model("llama-3.1-8b")
    graph = layer_graph("layer", model.layers[0], model.hidden, decode_batch("64x2"), precision, CHOICES)
    held = sum(tensor.size_bytes for tensor in graph.tensors if tensor.kind is TensorKind.WEIGHT)
    down = next(kernel for kernel in graph.kernels if kernel.name == "down")

    assert held == 218_103_808 * 4.25 / 8
    assert {loop.name for loop in down.loops if loop.inputs[0] is not None} == {"i"}


def test_a_device_becomes_a_system_of_its_rate_and_memories() -> None:
    device = shipped_devices()["h100-sxm"]
    system = find_system("H100-SXM", device, ["bf16", "fp8"])

    assert system.accelerator.peak_gflops == pytest.approx(989e3)
    assert (system.accelerator.lanes_per_core, system.accelerator.stages_per_core) == (32, 64)
    assert (system.accelerator.sram_bytes, system.dram_gb_per_s, system.chips) == (50e6, 3350.0, 8)
    assert system_of(replace(device, granule=(16, 16, 8)), ["fp8"]).accelerator.stages_per_core == 8
    assert find_system("h100", find_device("h100")[0], ["bf16"]).accelerator.cores > 0


def test_what_cannot_be_mapped_is_said() -> None:
    with pytest.raises(UserError, match="--map: decode 64,128x2: found sequences of 2 lengths in a step against one"):
        mapped("gpt2", decode_batch("64,128x2"))
    with pytest.raises(UserError, match="found 16 chips against the 8 of its network"):
        mapped("gpt2", decode_batch("64"), 16)
    device = replace(
        shipped_devices()["h100-sxm"], levels=(replace(shipped_devices()["h100-sxm"].levels[0], capacity_bytes=64),)
    )
    step = mapped_step("h100-sxm", Case(read_model("gpt2"), decode_batch("64"), device, BF16, CHOICES, roofline), 1)

    assert step.time_s is None
    assert all(part.reason and part.mapping is None for part in step.parts)
