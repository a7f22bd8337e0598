"""Serving plans against all choices of small spaces."""

import math
import random
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from dfcompile.errors import InfeasibleError
from dfcompile.language_models.configuration.reading import read_model
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.machines.device import Device, LinkLevel
from dfcompile.language_models.parallel.degrees import Degrees
from dfcompile.language_models.parallel.deployment import Case, Deployments
from dfcompile.language_models.planner import Demand, Plan, costs_on, degrees_of, loads, parts_of, planned, plans
from dfcompile.language_models.serving import Batching, Drafts, Lengths, Load, served_separately
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import StepChoices
from dfcompile.language_models.steps.step import step_of
from dfcompile.language_models.times.step_time import roofline
from dfcompile.records import replace

EMPTY = Batch("none", (Sequences(1, 1),))


def case_on(model: str, chips: int, gigabytes: int) -> Case:
    device = Device("x", {"bf16": 500e12}, 3e12, gigabytes * 10**9, links=(LinkLevel("sw", chips, 400e9),))
    return Case(read_model(model), EMPTY, device, uniform(FORMATS["bf16"]), StepChoices(), roofline)


def seconds_on(case: Case, degrees: Degrees) -> Callable[[Batch], float]:
    costs = costs_on(case, degrees)
    return lambda batch: costs(batch).seconds


def every_plan(case: Case, demand: Demand, chips: tuple[int, ...]) -> list[Plan]:
    """All choices that fit and keep the limits, without leaving any out."""
    found = []
    for degrees in degrees_of(case, demand, chips):
        seconds = seconds_on(case, degrees)
        users = math.ceil(demand.users / degrees.data)
        for load in loads(demand, degrees):
            try:
                seconds(Batch("held", (Sequences(demand.prompt + demand.answer - 1, 1, users),)))
                plan = planned(load, seconds, degrees)
            except InfeasibleError:
                continue
            if plan.served.ttft_s <= demand.ttft_s and plan.served.tpot_s <= demand.tpot_s:
                found.append(plan)
    return found + [plan for plan in separate_plans(case, demand, chips) if plan.is_within(demand)]


def separate_plans(case: Case, demand: Demand, chips: tuple[int, ...]) -> list[Plan]:
    """All choices in which some chips read prompts for the others: on each replica of them as soon as can be."""
    found = []
    for count in chips:
        for part in parts_of(count):
            for degrees in degrees_of(case, demand, (count - part,)):
                for replica in (size for size in range(1, part + 1) if part % size == 0):
                    try:
                        found.append(separate_plan(case, demand, degrees, part, replica))
                    except InfeasibleError:
                        continue
    return found


def separate_plan(case: Case, demand: Demand, degrees: Degrees, part: int, replica: int) -> Plan:
    users = math.ceil(demand.users / degrees.data)
    seconds = seconds_on(case, degrees)
    seconds(Batch("held", (Sequences(demand.prompt + demand.answer - 1, 1, users),)))
    ways = []
    for one in degrees_of(case, Demand(1, demand.prompt, demand.answer), (replica,)):
        prompt = Batch("prompt", (Sequences(0, demand.prompt),))
        try:
            taken = Deployments(replace(case, batch=prompt), replica).deployed(one)
        except InfeasibleError:
            continue
        ways.append((taken.exec_s, taken.kv_bytes / 400e9, one))
    if not ways:
        raise InfeasibleError("none")
    reading, sending, one = min(ways, key=lambda way: way[0] + way[1])
    load = Load(users, demand.prompt, demand.answer, Batching.SEPARATE, demand.prompt)
    readers = replace(one, data=part // replica)
    seen = served_separately(load, seconds, reading, sending, readers.data / degrees.data)
    return Plan(degrees, load, seen, seen.tokens_per_s(load) * degrees.data, readers)


def test_plans_are_those_of_brute_force_on_50_small_spaces() -> None:
    draw, empty = random.Random(45), 0
    for _ in range(50):
        case = case_on(draw.choice(["llama-3.2-1b", "gpt2", "qwen3-0.6b"]), 4, draw.choice([3, 8, 80]))
        limits = draw.choice([0.002, 0.2, math.inf]), draw.choice([0.0003, 0.001, math.inf])
        demand = Demand(draw.randint(1, 64), draw.randint(1, 700), draw.randint(2, 300), *limits)
        chips = draw.choice([(1,), (2,), (1, 2), (4,)])
        every = every_plan(case, demand, chips)
        if not every:
            with pytest.raises(InfeasibleError):
                plans(case, demand, chips)
            empty += 1
            continue
        best = plans(case, demand, chips)
        for one in best:
            assert one in every
        for one in every:
            assert any(b.served.tpot_s <= one.served.tpot_s and b.per_chip >= one.per_chip for b in best)
        for one, other in pairwise(best):
            assert one.served.tpot_s < other.served.tpot_s
            assert one.per_chip < other.per_chip
    assert 0 < empty < 25


def test_a_plan_of_70_billion_parameters_on_64_chips_takes_at_most_10_seconds() -> None:
    began = time.process_time()
    best = plans(case_on("llama-3.1-70b", 64, 80), Demand(256, 2048, 256, 2.0, 0.05), (64,))

    assert best
    assert all(plan.served.ttft_s <= 2.0 and plan.served.tpot_s <= 0.05 for plan in best)
    assert time.process_time() - began <= 10


def test_limits_that_nothing_keeps_say_what_is_nearest() -> None:
    with pytest.raises(
        InfeasibleError, match=r"--ttft 1000ms --tpot 0.01ms: found 0\.\d+ ms per token at least for 4 users"
    ):
        plans(case_on("gpt2", 1, 80), Demand(4, 100, 100, 1.0, 1e-5), (1,))
    with pytest.raises(InfeasibleError, match="no sequence fits: more chips"):
        plans(case_on("llama-3.1-8b", 1, 8), Demand(4, 100, 100), (1,))


def test_prefixes_that_are_cached_are_not_read_and_held_once() -> None:
    case, demand = case_on("llama-3.1-8b", 1, 80), Demand(64, 4096, 64)
    shared = replace(case, choices=StepChoices(shared_prefix=3072))
    plain, cached = plans(case, demand, (1,))[-1], plans(shared, replace(demand, cached=3072), (1,))[-1]

    assert cached.served.ttft_s < 0.4 * plain.served.ttft_s
    assert cached.per_chip > 2 * plain.per_chip
    tight = replace(case, device=replace(case.device, capacity_bytes=40 * 10**9))
    with pytest.raises(InfeasibleError, match="sequences fit"):
        plans(tight, demand, (1,))
    assert plans(replace(tight, choices=shared.choices), replace(demand, cached=3072), (1,))


def test_drafts_are_faster_as_far_as_they_are_accepted_and_take_memory() -> None:
    case, draft = case_on("llama-3.1-8b", 1, 80), case_on("llama-3.2-1b", 1, 80)
    demand = Demand(1, 1024, 256)
    none, free, paid, refused = (
        plans(case, replace(demand, drafts=drafts), (1,), model)[0].served.tpot_s
        for drafts, model in (
            (Drafts(), None), (Drafts(4, 0.8), None), (Drafts(4, 0.8), draft), (Drafts(4, 0.0), draft),
        )
    )  # fmt: skip

    assert free == pytest.approx(none / Drafts(4, 0.8).tokens, rel=0.02)  # reads the weights once for five tokens
    assert paid == pytest.approx(free + 4 * 0.15 * none / Drafts(4, 0.8).tokens, rel=0.05)  # 2.5 GB beside 16.1
    assert free < paid < none < refused
    small = case_on("llama-3.1-8b", 1, 17)
    assert plans(small, demand, (1,))
    with pytest.raises(InfeasibleError, match=r"sequences? fits?"):
        plans(small, replace(demand, drafts=Drafts(4, 0.8)), (1,), draft)


def test_a_mixture_of_lengths_is_between_its_kinds() -> None:
    case = case_on("llama-3.1-8b", 1, 80)
    short, long = Lengths(256, 64), Lengths(4096, 64)
    one, other, both = (
        plans(case, Demand(16, 4096, 64, kinds=kinds), (1,))[-1] for kinds in ((short,), (long,), (short, long))
    )

    assert one.per_chip > both.per_chip > other.per_chip
    twice = plans(case, Demand(16, 4096, 64, kinds=(short, replace(short, weight=3))), (1,))[-1]
    assert twice.per_chip == pytest.approx(one.per_chip)


def test_idle_power_of_all_chips_is_the_energy_of_a_turn() -> None:
    case, demand = case_on("llama-3.1-70b", 8, 80), Demand(64, 4096, 512)
    assert plans(case, demand, (8,))[0].energy_j_per_token is None
    idle = replace(case, device=replace(case.device, idle_w=100.0))
    found = plans(idle, demand, (8,))

    assert any(plan.readers is not None for plan in found)
    for plan in found:
        assert plan.energy_j_per_token == pytest.approx(100.0 / plan.per_chip, rel=0.02)


def test_energy_of_multiplying_is_that_of_all_tokens() -> None:
    case = case_on("llama-3.2-1b", 1, 80)
    costly = replace(case, device=replace(case.device, pj_per_mac={"bf16": 1.0}))
    (plan, *_) = plans(costly, Demand(1, 1000, 200), (1,))
    macs = sum(
        step_of(case.model, Batch("x", (group,)), case.precision, case.choices).macs
        for group in (Sequences(0, 1000), *(Sequences(1000 + made, 1) for made in range(199)))
    )

    assert plan.energy_j_per_token == pytest.approx(macs * 1e-12 / 200, rel=1e-3)


def test_power_that_is_limited_takes_longer() -> None:
    case = case_on("llama-3.2-1b", 1, 80)
    device = replace(case.device, pj_per_mac={"bf16": 1.0}, pj_per_byte=100.0)
    free, held = (
        plans(replace(case, device=one), Demand(8, 1000, 200), (1,))[-1] for one in (device, replace(device, tdp_w=100))
    )

    assert held.per_chip < 0.9 * free.per_chip
    assert held.energy_j_per_token == pytest.approx(100 / held.per_chip, rel=0.2)
