"""Serving plans against all choices of small spaces."""

import math
import random
import time
from itertools import pairwise

import pytest

from dfcompile.errors import InfeasibleError
from dfcompile.language_models.configuration.reading import read_model
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.machines.device import Device, LinkLevel
from dfcompile.language_models.parallel.deployment import Case
from dfcompile.language_models.planner import Demand, Plan, degrees_of, loads, planned, plans, seconds_on
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import StepChoices
from dfcompile.language_models.times.step_time import roofline

EMPTY = Batch("none", (Sequences(1, 1),))


def case_on(model: str, chips: int, gigabytes: int) -> Case:
    device = Device("x", {"bf16": 500e12}, 3e12, gigabytes * 10**9, links=(LinkLevel("sw", chips, 400e9),))
    return Case(read_model(model), EMPTY, device, uniform(FORMATS["bf16"]), StepChoices(), roofline)


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
    return found


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
