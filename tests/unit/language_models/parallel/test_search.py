"""Degrees: the search against trying everything, shares against the whole."""

import itertools
import math
import random

import pytest

from dfcompile.errors import InfeasibleError, UserError
from dfcompile.language_models.configuration.reading import Configuration, model_of, read_model
from dfcompile.language_models.energy import energy_of
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.machines.device import Device, LinkLevel
from dfcompile.language_models.machines.finding import find_device
from dfcompile.language_models.model import Attention, Experts
from dfcompile.language_models.parallel.degrees import (
    Degrees,
    divisors,
    expert_share,
    group_of,
    share_of_batch,
    share_of_layer,
    used_links,
)
from dfcompile.language_models.parallel.deployment import Case, Deployments, balanced
from dfcompile.language_models.steps.batch import decode_batch, prefill_batch
from dfcompile.language_models.steps.kernel import StepChoices
from dfcompile.language_models.steps.step import layer_kernels
from dfcompile.language_models.study import Aim, best_degrees
from dfcompile.language_models.times.step_time import roofline
from dfcompile.records import replace
from tests.examples import rounds

BF16 = uniform(FORMATS["bf16"])


def drawn_case(draw: random.Random) -> tuple[Case, int]:
    kv = draw.choice([1, 2, 4])
    fields: dict[str, object] = {
        "model_type": draw.choice(["llama", "qwen3_moe", "falcon_h1", "jamba"]),
        "hidden_size": 64 * draw.randint(1, 8),
        "intermediate_size": 64 * draw.randint(1, 8),
        "moe_intermediate_size": 32,
        "num_experts": draw.choice([4, 8]),
        "num_experts_per_tok": 2,
        "num_hidden_layers": draw.randint(1, 6),
        "num_attention_heads": kv * draw.choice([1, 2, 4]),
        "num_key_value_heads": kv,
        "head_dim": 16,
        "vocab_size": 1000,
    }
    text = f"{draw.randint(2, 300)}x{draw.randint(1, 16)}"
    links = draw.choice([(8,), (4, 2), (2, 2, 2), (2, 4)])
    device = Device(
        "drawn",
        {"bf16": 1e12},
        draw.choice([1e10, 1e11]),
        capacity_bytes=draw.choice([0, 0, 400_000, 3_000_000]),
        links=tuple(LinkLevel(draw.choice(["r", "sw", "fc"]), count, draw.choice([1e9, 1e11])) for count in links),
        link_latency_s=draw.choice([0.0, 1e-6]),
    )
    batch = draw.choice([prefill_batch, decode_batch])(text)
    model = model_of(Configuration("drawn", "drawn", fields))
    return Case(model, batch, device, BF16, StepChoices(), roofline), draw.choice([1, 2, 4, 8])


def by_trying_everything(case: Case, chips: int) -> float | None:
    """Every product of degrees, each with a fresh count: the least time."""
    best: float | None = None
    moe = [layer.mlp.count for layer in case.model.layers if isinstance(layer.mlp, Experts)]
    for tensor, sequence, data, pipeline in itertools.product(range(1, chips + 1), repeat=4):
        if tensor * sequence * data * pipeline != chips:
            continue
        if data > case.batch.sequences or pipeline > len(case.model.layers):
            continue
        for expert in range(1, chips + 1 if moe else 2):
            one = Degrees(tensor, sequence, data, pipeline, expert)
            if one.stage_chips % expert or (moe and moe[0] % expert) or one.stage_chips % one.expert_group:
                continue
            for parts in {1, pipeline, 2 * pipeline, 4 * pipeline} if pipeline > 1 else {1}:
                if parts > 1 and parts > -(-case.batch.sequences // data):
                    continue
                degrees = Degrees(tensor, sequence, data, pipeline, expert, parts)
                try:
                    taken = Deployments(case, chips).deployed(degrees).exec_s
                except InfeasibleError:
                    continue
                best = taken if best is None else min(best, taken)
    return best


def test_the_search_is_as_good_as_trying_everything() -> None:
    draw, solved = random.Random(), 0
    while solved < rounds(60):
        case, chips = drawn_case(draw)
        expected = by_trying_everything(case, chips)
        if expected is None:
            with pytest.raises(InfeasibleError):
                best_degrees(case, (chips,))
            continue
        assert best_degrees(case, (chips,)).best.exec_s == expected
        solved += 1


def test_stages_are_balanced_as_well_as_possible() -> None:
    draw = random.Random()
    for _ in range(200):
        costs = [draw.choice([1.0, 2.0, draw.random()]) for _ in range(draw.randint(1, 9))]
        stages = draw.randint(1, len(costs))
        cuts = [
            (*inner, len(costs)) for inner in itertools.combinations(range(1, len(costs)), stages - 1)
        ]  # fmt: skip
        found = balanced(tuple(costs), stages)

        assert len(found) == stages
        assert found[-1] == len(costs)
        assert largest(costs, found) == pytest.approx(min(largest(costs, ends) for ends in cuts))


def largest(costs: list[float], ends: tuple[int, ...]) -> float:
    starts = (0, *ends[:-1])
    assert all(start < end for start, end in zip(starts, ends, strict=True))
    return max(math.fsum(costs[start:end]) for start, end in zip(starts, ends, strict=True))


@pytest.mark.parametrize("name", ["llama-3.1-8b", "deepseek-v3", "gpt-oss-20b"])
def test_shares_of_a_tensor_group_add_up(name: str) -> None:
    model, batch = read_model(name), decode_batch("512x16")
    for layer in dict.fromkeys(model.layers):
        share = share_of_layer(layer, Degrees(tensor=4))
        whole, part = (
            sum(
                kernel.macs
                for kernel in layer_kernels(one, model.hidden, batch, BF16, StepChoices())
                if not kernel.name.startswith(("q_a", "kv_a", "router", "expert"))
            )
            for one in (layer, share)
        )

        assert 4 * part == whole


def test_heads_that_are_fewer_than_chips_are_copied() -> None:
    layer = read_model("llama-3.1-8b").layers[0]

    (attention,) = share_of_layer(layer, Degrees(tensor=16)).mixing
    assert isinstance(attention, Attention)
    assert attention.kv_elements == 256
    with pytest.raises(InfeasibleError, match="found attention heads 32, which 3 chips do not divide"):
        share_of_layer(layer, Degrees(tensor=3))
    with pytest.raises(InfeasibleError, match="found MLP width 13824, which 40 chips do not divide"):
        share_of_layer(read_model("llama-2-13b").layers[0], Degrees(tensor=40))


def test_the_cache_of_a_sequence_is_shared_by_its_chips() -> None:
    (group,) = share_of_batch(decode_batch("8192x8"), Degrees(sequence=4, data=2)).groups
    (piece,) = share_of_batch(prefill_batch("8192x2"), Degrees(sequence=4)).groups

    assert (group.context, group.count) == (2048, 4)
    assert (piece.new, piece.past) == (2048, 3072)


def test_chips_that_share_a_sequence_decode_the_same_tokens() -> None:
    mlp = read_model("mixtral-8x7b").layers[0].mlp
    assert isinstance(mlp, Experts)
    shared, apart = (
        expert_share(mlp, share_of_batch(decode_batch("512x16"), degrees), degrees, StepChoices()).tokens
        for degrees in (Degrees(sequence=4, expert=4), Degrees(data=4, expert=4))
    )

    assert (shared, apart) == (1, 4)


def test_trap_t22_what_does_not_fit_is_an_error_with_the_largest_batch() -> None:
    device, _ = find_device("a100-sxm")
    case = Case(read_model("llama-3.1-8b"), decode_batch("8448x256"), device, BF16, StepChoices(), roofline)

    with pytest.raises(
        InfeasibleError, match=r"264\.0 GiB of caches on a chip \(one chip\) against 74\.5 GiB \(about"
    ) as caught:
        best_degrees(case, (1,))
    fitting = int(str(caught.value).rpartition("about ")[2].split()[0])
    for count, fits in ((fitting, True), (fitting + 2, False)):
        case = Case(read_model("llama-3.1-8b"), decode_batch(f"8448x{count}"), device, BF16, StepChoices(), roofline)
        if fits:
            assert best_degrees(case, (1,)).best.held_bytes <= device.capacity_bytes
        else:
            with pytest.raises(InfeasibleError):
                best_degrees(case, (1,))


def test_where_weights_alone_do_not_fit_no_number_of_sequences_is_advised() -> None:
    device, _ = find_device("h100-sxm")
    case = Case(read_model("llama-3.1-70b"), decode_batch("4096x1"), device, BF16, StepChoices(), roofline)

    with pytest.raises(InfeasibleError, match=r"against 74\.5 GiB \(no sequence fits: more chips\)"):
        best_degrees(case, (1,))


def test_cost_may_choose_fewer_chips_than_time() -> None:
    device, _ = find_device("h100-sxm")
    case = Case(read_model("llama-3.1-8b"), decode_batch("2048x64"), device, BF16, StepChoices(), roofline)
    quick = best_degrees(case, (1, 2, 4, 8), Aim.TIME).best
    cheap = best_degrees(case, (1, 2, 4, 8), Aim.COST).best

    assert quick.degrees.chips == 8
    assert cheap.exec_s * cheap.degrees.chips <= quick.exec_s * quick.degrees.chips
    assert cheap.degrees.chips < 8


def test_groups_lie_along_the_network() -> None:
    links = (LinkLevel("sw", 8, 1.0), LinkLevel("r", 4, 1.0))
    extents = {
        (stride, chips): None if found is None else [(link.kind, link.chips) for link in found]
        for stride, chips in ((1, 4), (1, 16), (8, 4), (4, 4), (1, 3))
        for found in [group_of(links, stride, chips)]
    }

    assert extents == {
        (1, 4): [("sw", 4)], (1, 16): [("sw", 8), ("r", 2)], (8, 4): [("r", 4)], (4, 4): [("sw", 2), ("r", 2)],
        (1, 3): None,
    }  # fmt: skip
    assert divisors(12) == (1, 2, 3, 4, 6, 12)


def test_machines_are_filled_before_another_one_is_used() -> None:
    links = (LinkLevel("sw", 8, 1.0), LinkLevel("sw", 64, 1.0))
    used = {count: [link.chips for link in used_links(links, count, "x")] for count in (1, 4, 8, 12, 64, 72)}

    assert used == {1: [], 4: [4], 8: [8], 12: [6, 2], 64: [8, 8], 72: [8, 9]}


def test_energy_may_be_what_is_small() -> None:
    known = find_device("h100-sxm")[0]
    device = replace(known, pj_per_mac={"bf16": 0.5}, pj_per_byte=5.0, idle_w=100.0)
    case = Case(read_model("llama-3.1-8b"), decode_batch("2048x64"), device, BF16, StepChoices(), roofline)
    found = {aim: best_degrees(case, (1, 2, 4, 8), aim).best for aim in (Aim.TIME, Aim.ENERGY)}
    joules = {
        aim: energy_of(one.kernels, device, one.exec_s, one.degrees.chips, 1, one.link_bytes).total_j
        for aim, one in found.items()
    }

    assert joules[Aim.ENERGY] < joules[Aim.TIME]
    with pytest.raises(UserError, match="--aim energy: found no energies of system 'h100-sxm'"):
        best_degrees(replace(case, device=known), (1,), Aim.ENERGY)


def test_micro_batches_fill_a_pipeline() -> None:
    """Four equal layers on four stages: prompts take ``m + s - 1`` parts, decodes ``max(m, s)``."""
    fields: dict[str, object] = {
        "model_type": "llama", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1,
    }  # fmt: skip
    device = Device("one", {"bf16": 1e30}, 1e9, links=(LinkLevel("r", 4, 1e30),))
    model = model_of(Configuration("even", "even", fields))
    for batch, parts, taken in (
        (prefill_batch("64x16"), 16, 19),
        (decode_batch("64x16"), 8, 8),
        (decode_batch("64x16"), 1, 4),
    ):
        case = Case(model, batch, device, BF16, StepChoices(), roofline)
        found = Deployments(case, 4).deployed(Degrees(pipeline=4, micro_batches=parts))

        assert found.stage_layers == (1, 1, 1, 1)
        assert found.exec_s == pytest.approx(taken * found.compute_s, rel=0.2)


def test_p1_more_bandwidth_is_never_slower() -> None:
    draw = random.Random()
    for _ in range(30):
        case, _ = drawn_case(draw)
        slow = replace(case, device=replace(case.device, capacity_bytes=0))
        fast = replace(slow, device=replace(slow.device, bytes_per_s=2 * slow.device.bytes_per_s))

        assert Deployments(fast, 1).deployed(Degrees()).exec_s <= Deployments(slow, 1).deployed(Degrees()).exec_s
