"""Energy and activity: sums of the user's figures, and clocks that are lowered where power is limited."""

from fractions import Fraction

import pytest

from dfcompile.language_models.configuration.reading import read_model
from dfcompile.language_models.energy import activity, energy_of, is_known, link_activity, step_activity
from dfcompile.language_models.formats import FORMATS, uniform, with_dtypes
from dfcompile.language_models.machines.device import MemoryLevel
from dfcompile.language_models.machines.finding import shipped_devices
from dfcompile.language_models.parallel.deployment import offloaded_kernels
from dfcompile.language_models.steps.batch import prefill_batch
from dfcompile.language_models.steps.kernel import Fusion, StepChoices
from dfcompile.language_models.steps.step import step_of
from dfcompile.language_models.times.step_time import roofline, timed_step
from dfcompile.language_models.times.tiled import level_traffic, tiled
from dfcompile.records import replace

STEP = step_of(read_model("llama-3.1-8b"), prefill_batch("512"), uniform(FORMATS["bf16"]), StepChoices())
DEVICE = replace(shipped_devices()["h100-sxm"], pj_per_mac={"bf16": 0.5}, pj_per_byte=4.0, idle_w=60.0, tdp_w=0.0)
TIMED = timed_step(STEP.kernels, DEVICE, roofline)


def test_p6_energy_is_the_sum_of_its_parts() -> None:
    found = energy_of(TIMED, DEVICE, TIMED.exec_s, 1)

    assert found.dynamic_j == pytest.approx((STEP.macs * 0.5 + STEP.total("bytes") * 4.0) * 1e-12)
    assert found.static_j == pytest.approx(60 * TIMED.exec_s)
    assert found.power_w * TIMED.exec_s == pytest.approx(found.total_j)
    assert not found.is_throttled


def test_p6_a_limit_of_power_stretches_time_and_not_dynamic_energy() -> None:
    free = energy_of(TIMED, DEVICE, TIMED.exec_s, 1)
    limited = energy_of(TIMED, replace(DEVICE, tdp_w=free.power_w / 2), TIMED.exec_s, 1)

    assert limited.is_throttled
    assert limited.exec_s > free.exec_s
    assert limited.power_w == pytest.approx(free.power_w / 2)
    assert limited.dynamic_j == free.dynamic_j


def test_p6_one_of_computing_and_traffic_is_always_busy() -> None:
    for one in TIMED.kernels:
        busy = activity(one.kernel, one.time, DEVICE)

        assert max(busy.macs, busy.memory) == pytest.approx(1.0)
        assert min(busy.macs, busy.memory) >= 0


def test_p6_every_memory_link_and_vector_element_has_its_energy_and_its_activity() -> None:
    l2 = replace(DEVICE.levels[0], bytes_per_s=10e12, pj_per_byte=1.0)
    device = replace(
        DEVICE, levels=(l2,), offload=MemoryLevel("offload", 0, 64e9, pj_per_byte=20.0), vector_per_s=1e12,
        vector_pj=0.1, link_pj_per_byte=8.0,
    )  # fmt: skip
    kernels = offloaded_kernels(STEP.kernels, Fraction(1, 4))
    timed = timed_step(kernels, device, roofline)
    crossing = sum(one.count * one.offload_bytes for one in kernels)
    passed = sum(one.count * one.vector_elements for one in kernels)
    found = energy_of(timed, device, timed.exec_s, 2, link_bytes=10**9)
    busy = step_activity(timed, device, timed.exec_s)

    moved = STEP.total("bytes")
    joules = (STEP.macs * 0.5 + moved * 4.0 + moved * 1.0 + crossing * 20.0 + passed * 0.1 + 10**9 * 8.0) * 1e-12
    assert found.dynamic_j == pytest.approx(2 * joules)
    assert busy.macs == pytest.approx(STEP.macs / 494.5e12 / timed.exec_s)
    assert busy.levels["L2"] == pytest.approx(STEP.total("bytes") / 10e12 / timed.exec_s)
    assert busy.vector == pytest.approx(passed / 1e12 / timed.exec_s)
    assert busy.offload == pytest.approx(crossing / 64e9 / timed.exec_s)
    assert link_activity(9e9, 450e9, 0.1) == pytest.approx(0.2)
    assert (link_activity(0.0, 0.0, 0.1), step_activity(TIMED, DEVICE, 1.0).vector) == (None, None)
    assert step_activity(TIMED, DEVICE, 1.0).levels == {"L2": None}


def test_p6_a_vector_unit_that_is_slower_is_what_binds() -> None:
    device = replace(DEVICE, vector_per_s=1e9)
    for one in timed_step(STEP.kernels, device, roofline).kernels:
        taken = one.kernel.vector_elements / 1e9

        assert one.time.exec_s == max(one.alone.exec_s, taken)
        assert (one.time.bound == "Vector") == (taken > one.alone.exec_s)


def test_p6_vector_elements_are_those_of_norms_scores_and_widened_weights() -> None:
    tokens, heads, hidden, width, layers = 512, 32, 4096, 14336, 32
    norms = tokens * (4 * hidden + 2 * width)
    scores = heads * tokens * (tokens + 1) // 2
    weights = hidden * (hidden + 2 * 1024) + hidden * hidden + 3 * hidden * width
    narrow = with_dtypes(uniform(FORMATS["bf16"]), "w=int4")
    for precision, fusion, expected in (
        (uniform(FORMATS["bf16"]), Fusion.NONE, layers * (norms + scores)),
        (uniform(FORMATS["bf16"]), Fusion.ELEMENTWISE, layers * (norms + scores)),
        (uniform(FORMATS["bf16"]), Fusion.FULL, layers * (norms + scores)),
        (narrow, Fusion.NONE, layers * (norms + scores + weights) + hidden * 128_256),
    ):
        step = step_of(read_model("llama-3.1-8b"), prefill_batch("512"), precision, StepChoices(fusion=fusion))

        assert sum(one.count * one.vector_elements for one in step.kernels) == expected


def test_p6_what_leaves_a_memory_is_what_its_tiling_says() -> None:
    device = replace(
        DEVICE, levels=(DEVICE.levels[0], MemoryLevel("L1", 256 * 2**10, 30e12, 1, 0.5)), granule=(16, 16, 16)
    )
    for one in timed_step(STEP.kernels, device, tiled).kernels:
        if one.time.inner_bytes:
            assert one.time.inner_bytes == (
                round(list(level_traffic(one.kernel, device))[1].traffic_bytes),
                one.kernel.bytes,
            )


def test_no_energies_are_shipped() -> None:
    assert not any(is_known(device) for device in shipped_devices().values())
