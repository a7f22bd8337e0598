"""Kernels of training: against the generated DFModel designs, automatic differentiation, and published counts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.generators.language_model_workloads import llm_training
from dfcompile.language_models.configuration.reading import read_model
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.model import Attention, DenseMlp, Layer, LayerKind
from dfcompile.language_models.parallel.degrees import Degrees, share_of_layer
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import Kernel, StepChoices
from dfcompile.language_models.steps.step import WHOLE, layer_kernels
from dfcompile.language_models.steps.training_kernels import (
    Pass,
    Recompute,
    TrainingChoices,
    end_passes,
    gradients_of,
    layer_pass,
)
from dfcompile.records import replace

BF16 = uniform(FORMATS["bf16"])
WRITTEN = StepChoices(causal=False, flash=False)  # scores in memory, as Megatron-LM had them


def macs(kernels: tuple[Kernel, ...]) -> int:
    return sum(kernel.macs for kernel in kernels)


def gpt(hidden: int, heads: int, mlp: int | None = None) -> Layer:
    dim = hidden // heads
    attention = Attention(heads, heads, dim, dim, qkv_bias=True, output_bias=True)
    return Layer(attention, DenseMlp(mlp or 4 * hidden, gated=False, bias=True), norm_biases=True)


def passed(
    layer: Layer, hidden: int, tokens: int, count: int, training: TrainingChoices, tensor: int = 1,
    choices: StepChoices = WRITTEN,
) -> Pass:  # fmt: skip
    batch = Batch("t", (Sequences(0, tokens, count, head_rows=tokens),))
    share = share_of_layer(layer, Degrees(tensor=tensor))
    return layer_pass(share, hidden, batch, BF16, choices, training, WHOLE, tensor)


@pytest.mark.parametrize(("hidden", "heads"), [(12288, 96), (25600, 160)])
def test_products_are_those_of_the_generated_designs_of_175b_and_1t(hidden: int, heads: int) -> None:
    seq = 2048
    design = llm_training(hidden=hidden, seq=seq, num_head=heads, head_dim=hidden // heads, word=2)
    products = {"FWD": 0, "BWD": 0}
    for kernel in design.kernels:
        for kind in ("gemm_input1_weight", "gemm_input1_input2"):
            if kernel.HasField(kind):
                one = getattr(kernel, kind)
                products["BWD" if kernel.fwd_bwd == schema.BWD else "FWD"] += one.outer * one.M * one.K * one.N
    found = passed(gpt(hidden, heads), hidden, seq, 1, TrainingChoices())

    assert (macs(found.forward), macs(found.backward)) == (products["FWD"], products["BWD"])


def test_products_are_those_of_automatic_differentiation() -> None:
    hidden, heads, groups, dim, inner, tokens, count = 48, 6, 2, 8, 40, 16, 3
    device = torch.device("meta")
    weights = [
        torch.empty(shape, device=device, requires_grad=True)
        for shape in (
            (hidden, (heads + 2 * groups) * dim), (heads * dim, hidden), (hidden, 2 * inner), (inner, hidden),
        )
    ]  # fmt: skip
    taken = torch.empty((count, tokens, hidden), device=device, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        made = (taken @ weights[0]).view(count, tokens, heads + 2 * groups, dim).transpose(1, 2)
        q, k, v = torch.split(made, [heads, groups, groups], dim=1)
        k, v = (one.repeat_interleave(heads // groups, dim=1) for one in (k, v))
        seen = (torch.softmax(q @ k.transpose(2, 3), -1) @ v).transpose(1, 2).reshape(count, tokens, heads * dim)
        between = taken + seen @ weights[1]
        gate, up = torch.split(between @ weights[2], inner, dim=-1)
        result = between + (torch.nn.functional.silu(gate) * up) @ weights[3]
        forward = counter.get_total_flops()
        torch.autograd.backward([result.sum()])
    layer = Layer(Attention(heads, groups, dim, dim), DenseMlp(inner))
    found = passed(layer, hidden, tokens, count, TrainingChoices())

    assert 2 * macs(found.forward) == forward
    assert 2 * macs(found.backward) == counter.get_total_flops() - forward


@pytest.mark.parametrize("recompute", list(Recompute))
@pytest.mark.parametrize("tensor", [1, 8])
def test_activations_are_those_that_korthikanti_counts(recompute: Recompute, tensor: int) -> None:
    s, b, h, a = 2048, 2, 6144, 64
    layer, t = gpt(h, a), tensor
    alone, split = (
        passed(layer, h, s, b, TrainingChoices(recompute, dropout=True, splits_norms=splits), t)
        for splits in (False, True)
    )
    scores = 5 * a * s * s * b // t
    whole = {
        Recompute.NONE: (10 * s * b * h + 24 * s * b * h // t + scores, 34 * s * b * h // t + scores),
        Recompute.ATTENTION: (10 * s * b * h + 24 * s * b * h // t, 34 * s * b * h // t),
        Recompute.LAYERS: (2 * s * b * h, 2 * s * b * h // t),
    }[recompute]

    assert (alone.kept_bytes, split.kept_bytes) == whole
    if recompute is Recompute.LAYERS:
        assert split.working_bytes == 34 * s * b * h // t + scores
        assert macs(split.again) == macs(split.forward)
    if recompute is Recompute.ATTENTION:
        assert macs(split.again) == 2 * b * s * s * h // t


@given(
    st.sampled_from(
        ["qwen3-0.6b", "mixtral-8x7b", "deepseek-v3", "gemma-2-2b", "gpt-oss-20b", "llama-4-scout-17b-16e"]
    ),
    st.booleans(),
)
def test_every_family_has_gradients_of_every_product(name: str, flash: bool) -> None:
    model = read_model(name)
    kind: LayerKind
    for kind in model.kinds:
        kept = []
        for recompute in Recompute:
            choices = StepChoices(flash=flash)
            found = passed(kind.layer, model.hidden, 128, 2, TrainingChoices(recompute), choices=choices)
            kept.append(found.kept_bytes)
            products = sum(kernel.macs for kernel in found.forward)
            attention = [kernel for kernel in found.forward if kernel.name == "attention_prefill"]
            if not attention:
                assert macs(found.backward) == 2 * products
            else:
                (one,) = attention
                dims = model.attentions[0].qk_dim, model.attentions[0].v_dim
                again = one.macs // sum(dims) * dims[0]
                assert macs(found.backward) == 2 * products + again
            assert not any(kernel.kv_read_bytes or kernel.kv_write_bytes for kernel in found.forward + found.backward)
            summed = [kernel for kernel in found.backward if kernel.name.endswith("_bwd_weights")]
            written = sum(kernel.act_out_bytes for kernel in summed)
            assert kind.layer.mlp is not None
            used = model.attentions[0].weights(model.hidden) + kind.layer.mlp.active_parameters(model.hidden)
            assert written >= 4 * used * 0.99
        assert kept[0] >= kept[1] > kept[2]
        assert (kept[0] == kept[1]) == flash


def test_the_loss_keeps_its_logits_and_inputs() -> None:
    model, batch = read_model("gpt2"), Batch("t", (Sequences(0, 64, 3, head_rows=64),))
    embedding, head = end_passes(model, batch, BF16, model.vocabulary, 1)

    assert head.kept_bytes == 192 * (2 * 2 * 768 + 4 * 50257)
    assert macs(head.backward) == 2 * macs(head.forward) == 2 * 192 * 768 * 50257
    assert embedding.backward[0].act_out_bytes == 192 * 768 * 4


@pytest.mark.parametrize("flash", [True, False])
def test_gradients_depend_on_roles_and_not_on_names(flash: bool) -> None:
    model, batch = read_model("mixtral-8x7b"), Batch("train", (Sequences(0, 64, 2, head_rows=64),))
    layer = model.layers[0]
    for kernel in layer_kernels(layer, model.hidden, batch, BF16, StepChoices(flash=flash)):
        named, other = (
            [replace(gradient, name="") for gradient in gradients_of(one)]
            for one in (kernel, replace(kernel, name="other"))
        )

        assert named == other
