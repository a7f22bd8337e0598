"""Ways of counting time, against each other and against a hierarchy of memories."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import read_model
from dfcompile.language_models.formats import FORMATS, uniform, with_dtypes
from dfcompile.language_models.machines.device import MemoryLevel
from dfcompile.language_models.machines.finding import find_device, shipped_devices
from dfcompile.language_models.machines.sheet import csv_rows, sheet_of
from dfcompile.language_models.steps.batch import chunked_batch, decode_batch, prefill_batch
from dfcompile.language_models.steps.kernel import Kernel, KernelKind, StepChoices, Work
from dfcompile.language_models.steps.step import step_of
from dfcompile.language_models.times.calibrated import find_calibration
from dfcompile.language_models.times.step_time import roofline
from dfcompile.language_models.times.tiled import (
    Memory,
    Product,
    best_tile,
    bound,
    least_bytes,
    level_traffic,
    product_of,
    tiled,
)
from dfcompile.records import replace

BF16 = uniform(FORMATS["bf16"])
MODELS = (
    "llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3", "gemma-3-27b-text", "gpt2",
    "gpt-oss-120b", "llama-4-scout-17b-16e", "mistral-7b",
)  # fmt: skip
BATCHES = (prefill_batch("2048"), decode_batch("4096x64"), chunked_batch("8192:512:256"))


def kernels_of(model: str) -> list[Kernel]:
    return [kernel for batch in BATCHES for kernel in step_of(read_model(model), batch, BF16, StepChoices()).kernels]


@pytest.mark.parametrize("model", MODELS)
def test_bound_roofline_tiling_and_calibration_are_in_order(model: str) -> None:
    device, calibration = replace(shipped_devices()["a100-sxm"], granule=(16, 16, 16)), find_calibration("a100")
    for kernel in kernels_of(model):
        least, once = bound(kernel, device), roofline(kernel, device)
        real, fitted = tiled(kernel, device), calibration.seconds(kernel, device)

        assert least.exec_s <= real.exec_s * (1 + 1e-12), kernel
        assert once.exec_s <= least.exec_s * (1 + 1e-12), kernel
        assert once.exec_s <= fitted.exec_s * (1 + 1e-12), kernel


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 400), st.integers(50, 200_000))
def test_no_tiling_moves_less_than_the_bound(m: int, k: int, n: int, cache: int) -> None:
    product = Product(m, k, n, sum_bytes=2)
    tile = best_tile(product, Memory(cache, buffers=1))

    if tile is not None:
        assert product.compulsory_bytes <= least_bytes(product, cache) <= tile.traffic_bytes


def test_p3_memories_that_are_infinitely_fast_change_nothing_and_real_ones_never_help() -> None:
    outer = shipped_devices()["NVL-AX"]
    l3 = outer.levels[0]
    fast = replace(outer, levels=(l3, MemoryLevel("L1", 64 * 2**10)))
    known = replace(outer, levels=(replace(l3, bytes_per_s=2e12), MemoryLevel("L1", 2**20, shared_by=1)))
    for kernel in kernels_of("llama-3.1-8b"):
        alone = tiled(kernel, outer).exec_s

        assert tiled(kernel, fast).exec_s == alone
        assert tiled(kernel, known).exec_s >= alone
        assert tiled(kernel, replace(outer, levels=(replace(l3, bytes_per_s=1.0),))).exec_s == alone


def test_p3_one_memory_is_the_tiling_of_p4() -> None:
    device = shipped_devices()["NVL-AX"]
    for kernel in kernels_of("llama-3.1-8b"):
        if kernel.name in ("qkv_proj", "down"):
            tile = best_tile(product_of(kernel), Memory(device.cache_bytes))

            assert tile is not None
            assert tiled(kernel, device).traffic_bytes == tile.traffic_bytes
            assert tiled(kernel, device).memory_s == tile.traffic_bytes / device.bytes_per_s


def test_p3_a_tile_is_the_product_of_the_next_memory() -> None:
    outer = shipped_devices()["NVL-AX"]
    device = replace(outer, levels=(outer.levels[0], MemoryLevel("L1", 2**20)))
    kernel = kernels_of("llama-3.1-8b")[0]
    first, second = level_traffic(kernel, device)

    assert (first.name, second.name) == ("L3", "L1")
    assert second.traffic_bytes >= first.traffic_bytes


def test_trap_t13_edges_of_arrays_and_waves_take_time() -> None:
    device = replace(shipped_devices()["NVL-AX"], granule=(128, 1, 128))
    kernel = next(one for one in kernels_of("llama-3.1-8b") if one.name == "lm_head")

    assert tiled(kernel, device).compute_s > tiled(kernel, replace(device, granule=(1, 1, 1))).compute_s
    slow = replace(device, compute_efficiency=0.5, memory_efficiency=0.25, launch_s=1e-6)
    assert tiled(kernel, slow).compute_s == 2 * tiled(kernel, device).compute_s
    assert tiled(kernel, slow).exec_s > 4 * tiled(kernel, device).memory_s


def test_trap_t13_less_of_a_cache_is_usable_than_of_a_scratchpad() -> None:
    rows = "name,peak.bf16 [TFLOP/s],memory.bandwidth [GB/s],memory.L2.capacity [MB]{}\nx,312,2039,40{}\n"
    whole, most, few = (
        sheet_of(csv_rows(rows.format(heading, value)), "sheet").devices["x"]
        for heading, value in (("", ""), (",memory.L2.usable", ",0.8"), (",memory.L2.usable", ",0.1"))
    )
    for kernel in kernels_of("llama-3.1-8b"):
        assert tiled(kernel, whole).exec_s <= tiled(kernel, most).exec_s <= tiled(kernel, few).exec_s
        assert bound(kernel, few) == bound(kernel, whole)
    assert (whole.cache_bytes, most.cache_bytes) == (40_000_000, 32_000_000)
    large = max(kernels_of("llama-3.1-8b"), key=lambda one: one.weight_bytes * one.m)
    assert (tiled(large, few).traffic_bytes or 0) > (tiled(large, whole).traffic_bytes or 0)


def test_trap_t20_a_rate_that_is_not_said_is_an_error() -> None:
    step = step_of(read_model("llama-3.1-8b"), prefill_batch("8"), with_dtypes(BF16, "fp8"), StepChoices())
    kernel = step.kernels[0]

    with pytest.raises(UserError, match="system 'a100-sxm': found no rate for fp8 against bf16, fp16, int8"):
        roofline(kernel, shipped_devices()["a100-sxm"])
    device, _ = find_device("h100", ("fp8",))
    assert roofline(kernel, device).compute_s > 0


def test_trap_t19_vendors_units_are_decimal() -> None:
    devices = shipped_devices()

    assert devices["a100-sxm"].bytes_per_s == 2039e9
    assert devices["NVL-AX"].bytes_per_s == 342 * 2**30


def test_activations_products_and_a_direct_all_reduce_take_what_a_calibration_says(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"gemm": [1, 0.5, 3, 1, 4, 20], "all_reduce": [30, 0, 300, 3, 0.5, 250]}')
    found, device = find_calibration(str(path)), shipped_devices()["h100-sxm"]
    kernel = Kernel(KernelKind.MATRIX_WEIGHTS, Work.GEMM, "some", 8, 8, 8, 10, act_in_bytes=6700, weight_bytes=26800)
    reduced = found.all_reduce

    assert found.seconds(kernel, device).exec_s == pytest.approx(
        3e-6 + (33500 + 4 * 6700) / (0.5 * 3.35e12) + 9 * 20e-9
    )
    assert reduced is not None
    assert reduced.seconds(8, 1000) == pytest.approx(3e-6 + 7 * 0.5e-6 + 7 * 1000 / 250e9)
    assert reduced.seconds(8, 10**9) == pytest.approx(30e-6 + 2 * 7 / 8 * 10**9 / 300e9)


_WRONG = (
    "{}", "[]", '{"gemm": [1, 2]}', "x", '{"gemm": [2, 1, 0, 1]}', '{"gemm": [1, 1, 0, 1, 2]}',
    '{"gemm": [1, 1, 0, 1, -1, 0]}', '{"all_reduce": [1, 1, 1, 1]}', '{"all_reduce": [1, 1, 1, 1, 1, 0]}',
)  # fmt: skip


@pytest.mark.parametrize("text", _WRONG)
def test_a_wrong_calibration_is_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(text)

    with pytest.raises(UserError, match="calibration '") as caught:
        find_calibration(str(path))
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="no such file or calibration 'a10' \\(did you mean 'a100'"):
        find_calibration("a10")
