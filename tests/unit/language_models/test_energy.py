"""Energy and activity: sums of the user's figures, and clocks that are lowered where power is limited."""

from dataclasses import replace

import pytest

from dfcompile.language_models.configuration.reading import read_model
from dfcompile.language_models.energy import activity, energy_of, is_known
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.machines.finding import shipped_devices
from dfcompile.language_models.steps.batch import prefill_batch
from dfcompile.language_models.steps.choices import StepChoices
from dfcompile.language_models.steps.step import step_of
from dfcompile.language_models.times.kernel_time import roofline
from dfcompile.language_models.times.step_time import timed_step

STEP = step_of(read_model("llama-3.1-8b"), prefill_batch("512"), uniform(FORMATS["bf16"]), StepChoices())
DEVICE = replace(shipped_devices()["h100-sxm"], pj_per_mac={"bf16": 0.5}, pj_per_byte=4.0, idle_w=60.0, tdp_w=0.0)
TIMED = timed_step(STEP.kernels, DEVICE, roofline)


def test_p6_energy_is_the_sum_of_its_parts() -> None:
    found = energy_of(TIMED, DEVICE, TIMED.exec_s, 1)

    assert found.dynamic_j == pytest.approx((STEP.macs * 0.5 + STEP.bytes * 4.0) * 1e-12)
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


def test_no_energies_are_shipped() -> None:
    assert not any(is_known(device) for device in shipped_devices().values())
