"""Expected experts and loads, against drawing them."""

import math
import random

import numpy as np
import pytest

from dfcompile.language_models.steps.step import (
    chosen_shares,
    expected_distinct,
    expected_distinct_uniform,
    rank_imbalance,
    rank_imbalance_of,
)

TABLE = (  # experts, chosen, and how many of 1, 8, 32, 128 tokens touch: specs/llm.md, P3
    (8, 2, (2, 7.20, 8.00, 8)),
    (128, 8, (8, 51.6, 111.8, 128.0)),
    (256, 8, (8, 57.4, 163.3, 251.6)),
    (128, 4, (4, 28.7, 81.7, 125.8)),
    (128, 1, (1, 7.8, 28.4, 81.1)),
)


@pytest.mark.parametrize(("experts", "chosen", "expected"), TABLE)
def test_trap_t8_distinct_experts_of_published_models(experts: int, chosen: int, expected: tuple[float, ...]) -> None:
    found = [expected_distinct_uniform(experts, chosen, tokens) for tokens in (1, 8, 32, 128)]

    assert found == pytest.approx(expected, abs=0.06)


def test_distinct_experts_by_drawing() -> None:
    draw, tries = random.Random(), 300
    for _ in range(5):
        experts, tokens = draw.choice([16, 64, 128]), draw.randint(1, 60)
        chosen = draw.randint(1, 8)
        seen = [len({one for _ in range(tokens) for one in draw.sample(range(experts), chosen)}) for _ in range(tries)]
        expected = expected_distinct_uniform(experts, chosen, tokens)
        # Whether an expert is touched is as a coin; the sum of coins that exclude each other varies less.
        deviation = math.sqrt(expected * (1 - expected / experts) / tries)

        assert abs(sum(seen) / tries - expected) <= 6 * deviation + 3 / tries


def test_skew_touches_fewer_and_groups_change_nothing() -> None:
    draw = random.Random()
    for _ in range(50):
        weights = [draw.expovariate(1) for _ in range(32)]
        shares = chosen_shares(weights, 4)

        assert math.fsum(shares) == pytest.approx(4)
        assert max(shares) <= 1
        assert expected_distinct(shares, 20) <= expected_distinct_uniform(32, 4, 20) + 1e-9


def test_the_fullest_rank_by_drawing() -> None:
    draw, tries = np.random.default_rng(), 200
    for experts, chosen, tokens, ranks in ((64, 4, 256, 8), (128, 8, 512, 16), (32, 2, 1024, 4)):
        held, found = experts // ranks, []
        for _ in range(tries):
            drawn = draw.random((tokens, experts)).argpartition(chosen)[:, :chosen]
            loads = np.bincount(drawn.ravel() // held, minlength=ranks)
            found.append(loads.max() * ranks / (tokens * chosen))

        assert rank_imbalance(experts, chosen, tokens, ranks) == pytest.approx(np.mean(found), rel=0.02)


def test_measured_loads_of_ranks() -> None:
    assert rank_imbalance_of((1.0, 1.0, 2.0, 4.0), 2) == 1.5
    assert rank_imbalance(8, 2, 10, 1) == 1.0
