"""Training of recurrent mixers: products against automatic differentiation, what is kept, and a plan."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from dfcompile.language_models.configuration.reading import Configuration, model_of
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.machines.finding import find_device
from dfcompile.language_models.mixer import Mixer, Rule
from dfcompile.language_models.model import DenseMlp, Layer
from dfcompile.language_models.parallel.degrees import Degrees
from dfcompile.language_models.parallel.deployment import Case
from dfcompile.language_models.parallel.training import Trainings
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import Kernel, StepChoices
from dfcompile.language_models.steps.step import WHOLE
from dfcompile.language_models.steps.training_kernels import Pass, Recompute, TrainingChoices, layer_pass
from dfcompile.language_models.times.step_time import roofline
from dfcompile.records import replace

BF16 = uniform(FORMATS["bf16"])
KEPT = TrainingChoices()
HIDDEN, TOKENS, COUNT = 24, 32, 3
DUAL = Mixer(Rule.DUAL, 6, 5, 2, 4, head_columns=1, taps=4, head_vectors=3, chunk=8)
MAMBA = Mixer(Rule.SELECTIVE, 30, 1, key_dim=4, rank=2, taps=4, head_vectors=6)


def passed(mixer: Mixer, training: TrainingChoices = KEPT) -> Pass:
    batch = Batch("train", (Sequences(0, TOKENS, COUNT, head_rows=TOKENS),))
    layer, choices = Layer(None, None, 1, mixer=mixer), StepChoices(causal=False)
    return layer_pass(layer, HIDDEN, batch, BF16, choices, training, WHOLE, 1)


def named(kernels: tuple[Kernel, ...]) -> dict[str, Kernel]:
    return {kernel.name: kernel for kernel in kernels}


def test_products_of_chunks_are_those_of_automatic_differentiation_and_those_made_again() -> None:
    chunks, size, heads, groups, key, value = TOKENS // 8, 8, 6, 2, 4, 5
    device = torch.device("meta")

    def leaf(*shape: int) -> torch.Tensor:
        return torch.empty(shape, device=device, requires_grad=True)

    keys, queries = (leaf(COUNT, chunks, groups, size, key) for _ in range(2))
    values, decays = leaf(COUNT, chunks, heads, size, value), leaf(COUNT, chunks, heads, size, size)
    with FlopCounterMode(display=False) as made_again:
        scores = queries @ keys.transpose(-1, -2)
        of_heads = [one.repeat_interleave(heads // groups, dim=2) for one in (scores, keys, queries)]
        states = of_heads[1].transpose(-1, -2) @ values
    with FlopCounterMode(display=False) as results:
        mixed = (of_heads[0] * decays) @ values + of_heads[2] @ states
    with FlopCounterMode(display=False) as gradients:
        torch.autograd.backward([mixed.sum()])
    found = passed(DUAL)
    forward, backward = named(found.forward)["scan_prefill"], named(found.backward)["scan_prefill_bwd"]

    assert 2 * forward.macs == made_again.get_total_flops() + results.get_total_flops()
    assert 2 * backward.macs == gradients.get_total_flops() + made_again.get_total_flops()


@pytest.mark.parametrize("mixer", [DUAL, MAMBA, replace(DUAL, rule=Rule.DELTA)])
def test_every_operand_is_kept_once_and_states_are_not(mixer: Mixer) -> None:
    found = passed(mixer)
    rows = TOKENS * COUNT
    # The input of the norm, what it wrote, the opened columns, what the convolution wrote, and the result.
    kept = 2 * HIDDEN + mixer.opening + mixer.channels + mixer.inner
    if mixer.rank:
        kept += mixer.inner + mixer.stepped  # steps of every channel; steps of low rank, keys and queries

    assert found.kept_bytes == 2 * rows * kept
    assert not any(kernel.kv_read_bytes or kernel.kv_write_bytes for kernel in (*found.forward, *found.backward))
    summed = [kernel for kernel in found.backward if kernel.name.endswith("_bwd_weights")]
    assert sum(kernel.act_out_bytes for kernel in summed) == 4 * mixer.weights(HIDDEN)
    convolved = named(found.backward)["short_convolution_bwd"]
    assert convolved.act_out_bytes == 2 * rows * mixer.channels + 4 * mixer.channels * 4


def test_layers_that_are_computed_again_keep_their_input() -> None:
    found = passed(DUAL, TrainingChoices(Recompute.LAYERS))

    assert found.kept_bytes == 2 * TOKENS * COUNT * HIDDEN
    assert found.again == found.forward


def test_a_hybrid_is_trained_on_several_chips() -> None:
    values = {
        "model_type": "nemotron_h", "hidden_size": 64, "hybrid_override_pattern": "M-M*", "vocab_size": 128,
        "intermediate_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "mamba_num_heads": 8,
        "mamba_head_dim": 16, "ssm_state_size": 16,
    }  # fmt: skip
    batch = Batch("train", (Sequences(0, 256, 4, head_rows=256),))
    case = Case(model_of(Configuration("d", "d", values)), batch, find_device("h100")[0], BF16, StepChoices(), roofline)
    one, four = (
        Trainings(case, TrainingChoices(), chips).step(Degrees(tensor=chips, micro_batches=4)) for chips in (1, 4)
    )

    assert [kind.name for kind in case.model.kinds] == ["mamba-2", "dense", "full attention"]
    assert four.held.activations < one.held.activations
    assert four.held.weights < one.held.weights
    assert isinstance(case.model.layers[1].mlp, DenseMlp)
