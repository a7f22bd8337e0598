"""A single product: each figure of docs/mapping.md from its formula."""

from math import ceil
from pathlib import Path

import pytest

import dfcompile as df

ROOT = Path(__file__).parent.parent.parent
M, K, N = 32, 96, 64
PRODUCTS = M * N
BYTES = 4 * (M * K + K * N + M * N)
WORK = PRODUCTS * K  # of any expansion: what is multiplied


def test_on_the_canonical_machine() -> None:
    (result,) = df.compile(ROOT / "examples" / "product" / "model.py", pes=64, expand=["MatMul=ip"]).report.results
    mapping = result.mapping
    assert mapping is not None

    assert mapping.time_s == pytest.approx((PRODUCTS // 64 * K + PRODUCTS) * 1e-9)
    assert mapping.bound_time_s == pytest.approx(mapping.time_s)
    assert mapping.ideal_time_s == pytest.approx(WORK / 64 * 1e-9)
    assert mapping.ideal.bound_by == "compute"
    assert mapping.ideal.memory_s == pytest.approx(BYTES / 300e9)
    assert mapping.ideal.chain_s == pytest.approx(2e-9)  # by outer products a multiplication, then a sum of streams
    assert mapping.perfect_streams.time_s == pytest.approx(PRODUCTS * K / 64 * 1e-9)
    assert mapping.dram_bytes == BYTES
    assert mapping.configurations[0].memory_s == pytest.approx(BYTES / 300e9)


def test_on_cores_of_many_lanes() -> None:
    word = 32 * 6
    one, two = df.compile(
        ROOT / "examples" / "product" / "model.py", pes=8, expand=["MatMul=ip"], system="sn30", chips=[1, 2]
    ).report.results
    alone, shared = one.mapping, two.mapping
    assert alone is not None
    assert shared is not None

    cycles = PRODUCTS // 8 * ceil(K / word) + ceil(PRODUCTS / word)
    assert alone.time_s == pytest.approx(cycles * 0.8e-9)
    assert alone.ideal_time_s == pytest.approx(BYTES / 300e9)
    assert alone.ideal.compute_s == pytest.approx(ceil(WORK / (8 * word)) * 0.8e-9)
    assert alone.perfect_streams.time_s == pytest.approx(192 * 0.8e-9)
    columns = PRODUCTS // 2  # of each chip
    assert shared.time_s == pytest.approx((columns // 8 * ceil(K / word) + ceil(columns / word)) * 0.8e-9)
    assert shared.configurations[0].memory_s == pytest.approx(4 * (M * K + K * N // 2 + M * N // 2) / 300e9)
    assert shared.exchanges == ()
    assert shared.bound_time_s == pytest.approx(ceil((PRODUCTS + 11) / 16) * 0.8e-9)
    assert shared.ideal_time_s == pytest.approx(BYTES / 600e9)
    assert shared.ideal.compute_s == pytest.approx(ceil(WORK / (16 * word)) * 0.8e-9)
    assert shared.perfect_streams.time_s == pytest.approx(4 * (M * K // 2 + K * N // 2 + M * N) / 300e9)
    assert shared.perfect_streams.network_bytes == 4 * M * N  # a reduce-scatter: there k is split


def test_on_two_chips_of_narrow_cores(tmp_path: Path) -> None:
    """The schedule of the whole, which is known there, is none of a share."""
    systems = ROOT / "dfcompile" / "dfmodel_backend" / "machine" / "systems"
    canonical, _, _ = (systems / "canonical.yaml").read_text().partition("sources:")
    _, _, network = (systems / "sn30.yaml").read_text().partition("network:")
    narrow = tmp_path / "narrow.yaml"
    narrow.write_text(f"{canonical}network:{network.partition('sources:')[0]}")
    (result,) = df.compile(
        ROOT / "examples" / "product" / "model.py", pes=8, expand=["MatMul=ip"], system=str(narrow), chips=2
    ).report.results
    assert result.mapping is not None

    assert result.mapping.chips == 2
    assert result.mapping.time_s == pytest.approx((PRODUCTS // 2 // 8 * K + PRODUCTS // 2) * 1e-9)
