"""Training steps on chips: memory by hand, the pipeline played, exchanges, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import InfeasibleError
from dfcompile.language_models.configuration.reading import Configuration, model_of, read_model
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.machines.device import Device, LinkLevel
from dfcompile.language_models.model import Model
from dfcompile.language_models.parallel.degrees import Degrees
from dfcompile.language_models.parallel.deployment import Case
from dfcompile.language_models.parallel.training import (
    Trainings,
    TrainingStep,
    in_flight,
    training_degrees,
    training_plans,
)
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import StepChoices
from dfcompile.language_models.steps.training_kernels import Recompute, TrainingChoices
from dfcompile.language_models.times.step_time import roofline
from dfcompile.records import replace

NETWORK = (LinkLevel("sw", 8, 300e9), LinkLevel("sw", 512, 25e9))
DEVICE = Device("x", {"bf16": 156e12}, 2e12, links=NETWORK)


def gpt(hidden: int, layers: int, heads: int, vocabulary: int = 51200) -> Model:
    sizes = {"n_embd": hidden, "n_layer": layers, "n_head": heads, "n_positions": 2048, "vocab_size": vocabulary}
    return model_of(Configuration("gpt", "gpt", {"model_type": "gpt2", **sizes}))


def case_of(model: Model, sequences: int, length: int = 2048, device: Device = DEVICE) -> Case:
    batch = Batch("train", (Sequences(0, length, sequences, head_rows=length),))
    choices = StepChoices(causal=False, flash=False)
    return Case(model, batch, device, uniform(FORMATS["bf16"]), choices, roofline)


def step_of(case: Case, degrees: Degrees, training: TrainingChoices | None = None) -> TrainingStep:
    return Trainings(case, training or TrainingChoices(), degrees.chips).step(degrees)


def test_the_memory_of_gpt_3_175b_is_that_of_a_hand_count() -> None:
    h, layers, vocabulary, s, t, p = 12288, 96, 51200, 2048, 8, 8
    selective = TrainingChoices(Recompute.ATTENTION, dropout=True, splits_norms=True, interleave=3)
    held = step_of(case_of(gpt(h, layers, 96), 64), Degrees(t, 1, 1, p, 1, 64), selective).held
    matrices, split_biases, whole_biases, norms = 12 * h * h, 3 * h + 4 * h, 2 * h, 4 * h
    layer = matrices // t + split_biases // t + whole_biases + norms
    elements = layers // p * layer + (vocabulary // t + s) * h  # the first stage has the embedding

    assert (held.weights, held.gradients, held.optimiser) == (2 * elements, 4 * elements, 12 * elements)
    assert held.total - held.activations == 18 * elements
    # 34 s b h / t in each layer, as many layers as the model has, and (p - 1) / (p v) more of them in flight.
    assert held.activations == 34 * s * h // t * layers * 31 // 24
    assert round(layers * 12 * h * h * 18 / 64 / 2**30, 4) == 45.5625  # of layers' matrices, as published
    assert held.activations / 2**30 == pytest.approx(12.3515625, rel=1e-9)  # as published


def played(forward: list[float], backward: list[float], micro_batches: int) -> tuple[float, list[int]]:
    """Play one forward and one backward pass in turn: time of all, and most micro-batches that each stage has."""
    stages = len(forward)
    done: dict[tuple[str, int, int], float] = {}
    orders = []
    for stage in range(stages):
        warm = min(micro_batches, stages - 1 - stage)
        order = [("f", number) for number in range(warm)]
        for number in range(micro_batches - warm):
            order += [("f", warm + number), ("b", number)]
        orders.append(order + [("b", number) for number in range(micro_batches - warm, micro_batches)])
    free, at, most, held = [0.0] * stages, [0] * stages, [0] * stages, [0] * stages
    while any(at[stage] < len(orders[stage]) for stage in range(stages)):
        for stage in range(stages):
            while at[stage] < len(orders[stage]):
                way, number = orders[stage][at[stage]]
                before = stage - 1 if way == "f" else stage + 1
                if 0 <= before < stages and (way, before, number) not in done:
                    break
                ready = done.get((way, before, number), 0.0)
                free[stage] = max(free[stage], ready) + (forward if way == "f" else backward)[stage]
                done[way, stage, number] = free[stage]
                held[stage] += 1 if way == "f" else -1
                most[stage] = max(most[stage], held[stage])
                at[stage] += 1
    return max(free), most


@given(stages=st.integers(1, 6), micro_batches=st.integers(1, 12), ratio=st.sampled_from([1.0, 2.0, 3.0]))
def test_equal_stages_take_what_the_schedule_takes(stages: int, micro_batches: int, ratio: float) -> None:
    whole, most = played([1.0] * stages, [ratio] * stages, micro_batches)

    assert whole == pytest.approx((micro_batches + stages - 1) * (1 + ratio))
    assert most == [in_flight(stage, stages, micro_batches, 1) for stage in range(stages)]


@given(
    st.lists(st.floats(0.1, 3.0), min_size=1, max_size=5).flatmap(
        lambda forward: st.tuples(st.just(forward), st.integers(1, 10))
    )
)
def test_unequal_stages_take_at_most_what_is_counted(drawn: tuple[list[float], int]) -> None:
    forward, micro_batches = drawn
    backward = [2 * one for one in forward]
    whole, _ = played(forward, backward, micro_batches)
    slots = [a + b for a, b in zip(forward, backward, strict=True)]

    assert whole >= micro_batches * max(slots) * (1 - 1e-12)
    assert whole <= (sum(slots) + (micro_batches - 1) * max(slots)) * (1 + 1e-12)


def test_a_step_is_the_sum_of_its_parts_and_bubbles_shrink_with_runs() -> None:
    case, degrees = case_of(gpt(1024, 16, 16, 512), 64), Degrees(2, 1, 2, 4, 1, 8)
    plain, runs = (step_of(case, degrees, TrainingChoices(interleave=count)) for count in (1, 2))

    for one in (plain, runs):
        parts = one.forward_s, one.recompute_s, one.backward_s, one.exchange_s, one.bubble_s, one.gradients_s
        assert one.exec_s == pytest.approx(sum(parts) + one.optimiser_s)
    assert runs.bubble_s < 0.6 * plain.bubble_s
    assert runs.held.activations > plain.held.activations
    assert plain.stage_layers == (4, 4, 4, 4)


def test_gradients_of_replicas_are_summed_in_4_bytes_and_states_shared() -> None:
    fast = replace(DEVICE, links=(LinkLevel("sw", 8, 1e9),))
    case = case_of(gpt(256, 2, 4, 512), 8, 64, fast)
    alone, both = step_of(case, Degrees(data=8)), step_of(case, Degrees(data=8), TrainingChoices(shards_optimiser=True))
    elements = alone.held.gradients // 4

    assert alone.gradients_s == pytest.approx(2 * 7 / 8 * 4 * elements / 1e9)
    assert both.gradients_s == pytest.approx(7 / 8 * (4 + 2) * elements / 1e9)
    assert (alone.held.optimiser, both.held.optimiser) == (12 * elements, 12 * -(-elements // 8))
    assert both.optimiser_s < 0.2 * alone.optimiser_s


def test_experts_are_summed_among_the_replicas_that_hold_the_same() -> None:
    case = case_of(read_model("mixtral-8x7b"), 64, 512)
    spread, whole = (step_of(case, Degrees(data=8, expert=count)) for count in (8, 1))
    experts = 32 * 8 * 3 * 4096 * 14336
    rest = whole.held.gradients // 4 - experts

    assert spread.held.gradients // 4 == rest + experts // 8
    assert spread.gradients_s < 0.1 * whole.gradients_s


def test_weights_that_a_checkpoint_quantised_are_trained_in_the_dtype() -> None:
    plain = case_of(gpt(1024, 4, 16), 8)
    narrow = {"attention": FORMATS["fp8"], "mlp": FORMATS["mxfp4"], "activations": FORMATS["fp8"]}
    quantised = replace(plain, precision=plain.precision.having(narrow))

    assert step_of(quantised, Degrees()) == step_of(plain, Degrees())


def test_every_layer_again_takes_a_forward_pass_and_its_exchanges_again() -> None:
    case, degrees = case_of(gpt(1024, 8, 16), 16), Degrees(tensor=4, micro_batches=16)
    none, attention, layers = (step_of(case, degrees, TrainingChoices(recompute)) for recompute in Recompute)

    assert none.recompute_s == 0 < attention.recompute_s < layers.recompute_s < layers.forward_s
    assert none.exchange_s < layers.exchange_s < 1.5 * none.exchange_s + 1e-12
    assert none.held.activations > attention.held.activations > layers.held.activations
    assert layers.held.working > 0


def test_what_cannot_be_is_refused() -> None:
    case = case_of(gpt(1024, 6, 16), 12)
    with pytest.raises(InfeasibleError, match="found 12 sequences, which 8 micro-batches do not divide"):
        step_of(case, Degrees(data=8))
    with pytest.raises(InfeasibleError, match="--interleave 2: found 6 layers and 6 micro-batches of 2 stages"):
        step_of(case, Degrees(pipeline=2, micro_batches=6), TrainingChoices(interleave=2))
    with pytest.raises(InfeasibleError, match="a context that chips share"):
        step_of(case, Degrees(sequence=2))
    small = case_of(gpt(1024, 6, 16), 12, device=replace(DEVICE, capacity_bytes=10**9))
    with pytest.raises(InfeasibleError, match=r"found 20.5 GiB on a chip \(0.2 of weights, .* against 0\.9 \(one"):
        step_of(small, Degrees())


def test_plans_are_those_that_nothing_beats_in_time_and_memory() -> None:
    case = case_of(gpt(1024, 8, 16), 32, device=replace(DEVICE, capacity_bytes=80 * 10**9))
    best = training_plans(case, TrainingChoices(Recompute.LAYERS), (4, 8))
    every = []
    for chips in (4, 8):
        trainings = Trainings(case, TrainingChoices(Recompute.LAYERS), chips)
        for degrees in training_degrees(case, chips):
            try:
                every.append(trainings.step(degrees))
            except InfeasibleError:
                continue

    assert len(every) > 20
    for one in best:
        assert not any(
            other.exec_s * other.degrees.chips < one.exec_s * one.degrees.chips and other.held.total <= one.held.total
            for other in every
        )
    for other in every:
        assert any(
            one.exec_s * one.degrees.chips <= other.exec_s * other.degrees.chips and one.held.total <= other.held.total
            for one in best
        )
