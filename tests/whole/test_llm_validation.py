"""Published latencies, and the script that fits efficiencies anew."""

import random
from pathlib import Path

import pytest

from benchmarks.llm_fit import calibration
from benchmarks.llm_validation import comparisons, mean_errors
from dfcompile.language_models.times.calibrated import find_calibration


def test_calibrated_times_are_within_12_percent_of_17_published_ones() -> None:
    found = comparisons()
    roofline, calibrated = mean_errors(found)

    assert len(found) == 17
    assert calibrated <= 0.12
    assert roofline == pytest.approx(0.44, abs=0.02)
    assert all(one.roofline_ms <= one.calibrated_ms for one in found)


def test_the_fit_finds_the_parameters_that_made_its_rows(tmp_path: Path) -> None:
    draw, peak, bandwidth = random.Random(7), 312e12, 2.039e12
    truth = {
        "gemm": (0.85, 0.73, 4.5, 1.5),
        "attn_context": (0.57, 0.41, 27.0, 1.2),
        "attn_decode": (0.3, 0.7, 20.0, 3.0),
    }
    rows = []
    for work, (compute, memory, start, norm) in truth.items():
        for number in range(400):
            flops, amount = 10 ** draw.uniform(6, 14), 10 ** draw.uniform(4, 10)
            first, second = flops / (compute * peak), amount / (memory * bandwidth)
            longest = max(first, second)
            taken = start * 1e-6 + longest * ((first / longest) ** norm + (second / longest) ** norm) ** (1 / norm)
            rows.append(
                {"work": work, "flops": str(flops), "bytes": str(amount), "microseconds": str(taken * 1e6),
                 "chips": "", "held_out": str(int(number % 4 == 0))}
            )  # fmt: skip
    for chips in (2, 4):
        for amount in (1e3, 1e5, 1e7, 1e8):
            taken = 11e-6 + 1.64e-6 * (chips - 1) + 2 * (chips - 1) / chips * amount / 160e9
            rows.append(
                {"work": "all_reduce", "flops": "", "bytes": str(amount), "microseconds": str(taken * 1e6),
                 "chips": str(chips), "held_out": ""}
            )  # fmt: skip
    made = calibration(rows, peak, bandwidth, "drawn")

    for work, expected in truth.items():
        assert made[work] == pytest.approx(expected, rel=0.01)
    assert made["all_reduce"] == pytest.approx((11.0, 1.64, 160), rel=0.01)
    assert "100 rows held out" in str(made["error"])
    import json

    path = tmp_path / "mine.json"
    path.write_text(json.dumps(made))
    assert find_calibration(str(path)).classes["gemm"].compute == pytest.approx(0.85, rel=0.01)


def test_the_fit_finds_what_activations_and_products_take_besides() -> None:
    draw, peak, bandwidth, rows = random.Random(11), 989e12, 3.35e12, []
    for _ in range(400):
        flops, amount = 10 ** draw.uniform(6, 14), 10 ** draw.uniform(4, 10)
        inputs, products = amount * draw.random(), draw.randrange(2000)
        second = (amount + 4.0 * inputs) / (0.8 * bandwidth) + 20e-9 * products
        taken = 6e-6 + ((flops / (0.7 * peak)) ** 2 + second**2) ** 0.5
        rows.append(
            {"work": "gemm", "flops": str(flops), "bytes": str(amount), "microseconds": str(taken * 1e6),
             "inputs": str(inputs), "products": str(products)}
        )  # fmt: skip

    assert calibration(rows, peak, bandwidth, "drawn")["gemm"] == pytest.approx(
        (0.7, 0.8, 6.0, 2.0, 4.0, 20.0), rel=0.01
    )


def test_the_fit_finds_two_ways_of_all_reduces() -> None:
    rows = []
    for chips in (2, 4, 8):
        for power in range(10, 30):
            others, amount = chips - 1, 2**power
            whole = 25e-6 + 0.5e-6 * others + 2 * others / chips * amount / 350e9
            direct = 3e-6 + 0.1e-6 * others + others * amount / 280e9
            taken = str(1e6 * min(whole, direct))
            rows.append(
                {"work": "all_reduce", "flops": "", "bytes": str(amount), "microseconds": taken, "chips": str(chips)}
            )
    found = calibration(rows, 989e12, 3.35e12, "drawn")["all_reduce"]

    assert found == pytest.approx((25.0, 0.5, 350, 3.0, 0.1, 280), rel=0.02)
