"""P1's tier beside a chip's memory: what crosses its link, what fits with it, and what it costs."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.api.language_models import llm, offload_of
from dfcompile.errors import InfeasibleError, UserError
from dfcompile.language_models.configuration.reading import read_model
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.machines.device import MemoryLevel
from dfcompile.language_models.machines.finding import shipped_devices
from dfcompile.language_models.machines.sheet import csv_rows, sheet_of
from dfcompile.language_models.parallel.degrees import Degrees
from dfcompile.language_models.parallel.deployment import (
    Case,
    Deployment,
    Deployments,
    least_share,
    offloaded_kernels,
    part_of,
)
from dfcompile.language_models.steps.batch import decode_batch
from dfcompile.language_models.steps.kernel import StepChoices
from dfcompile.language_models.steps.step import step_of
from dfcompile.language_models.times.step_time import Transfers, roofline, timed_step
from dfcompile.records import replace

BF16 = uniform(FORMATS["bf16"])
MODEL = read_model("llama-3.1-8b")
H100 = shipped_devices()["h100-sxm"]


def deployed(
    batch: str, share: Fraction | None, link: float = 64e9, transfers: Transfers = Transfers.ASYNC, held: int = 0
) -> Deployment:
    device = replace(H100, offload=MemoryLevel("offload", held, link))
    case = Case(MODEL, decode_batch(batch), device, BF16, StepChoices(), roofline, transfers=transfers, offload=share)
    return Deployments(case, 1).deployed(Degrees())


def test_p1_what_is_offloaded_crosses_its_link_and_what_fits_does_not() -> None:
    found, alone = deployed("8448x256", None), deployed("8448x32", None)
    caches, weights = 8448 * 256 * 131_072, 2 * 8_030_261_248

    assert found.offload_bytes == caches + weights - H100.capacity_bytes
    assert found.held_bytes == H100.capacity_bytes
    assert found.exec_s == pytest.approx(found.offload_bytes / 64e9, rel=0.02)
    assert found.exec_s > found.offload_bytes / 64e9
    assert not alone.offload
    assert not alone.offload_bytes
    assert alone.exec_s == deployed("8448x32", Fraction(0)).exec_s


@given(st.integers(1, 64), st.fractions(0, 1, max_denominator=50), st.integers(1, 200), st.integers(1, 200))
def test_p1_time_is_monotone_in_share_and_bandwidth_and_never_below_the_bytes(
    count: int, share: Fraction, low: int, high: int
) -> None:
    low, high = sorted((low, high))
    for policy in Transfers:
        slow, fast, less = (
            deployed(f"4096x{count}", part, link * 1e9, policy)
            for part, link in ((share, low), (share, high), (share / 2, low))
        )

        assert slow.exec_s >= fast.exec_s
        assert slow.exec_s >= less.exec_s * (1 - 1e-12)
        assert slow.exec_s >= slow.kernels.offload_s * (1 - 1e-12)
        assert slow.offload_bytes == part_of(count * 4096 * 131_072, share)
    ahead = deployed(f"4096x{count}", share, low * 1e9, Transfers.PREFETCH)
    assert deployed(f"4096x{count}", share, low * 1e9).exec_s >= ahead.exec_s * (1 - 1e-12)


def test_p1_prefetch_hides_an_offloaded_read_exactly_where_the_layer_is_longer() -> None:
    device = replace(H100, offload=MemoryLevel("offload", 0, 64e9))
    kernels = step_of(MODEL, decode_batch("4096x8"), BF16, StepChoices()).kernels
    layer = [one for one in kernels if one.part == kernels[0].part]
    (whole,) = timed_step(layer, device, roofline, Transfers.PREFETCH).parts
    for percent in range(0, 101, 5):
        moved = offloaded_kernels(layer, Fraction(percent, 100))
        (part,) = timed_step(moved, device, roofline, Transfers.PREFETCH).parts
        (first,) = timed_step(moved, device, roofline, Transfers.ASYNC).parts
        later_s = (part.count * part.exec_s - first.exec_s) / (part.count - 1)  # the first has nothing before it

        assert later_s == pytest.approx(max(whole.exec_s, part.offload_s), rel=1e-12)


def test_p1_a_chip_whose_weights_do_not_fit_gains_nothing() -> None:
    with pytest.raises(InfeasibleError, match=r"131\.4 GiB of weights and 0\.0 GiB of caches"):
        llm("llama-3.1-70b", "h100-sxm", decode="512", offload="auto")
    with pytest.raises(InfeasibleError, match=r"found 204\.5 GiB of caches to offload of a chip .* against 1\.0 GiB"):
        deployed("8448x256", None, held=2**30)
    with pytest.raises(InfeasibleError, match="57 of 256 sequences fit; --offload auto"):
        llm("llama-3.1-8b", "h100-sxm", decode="8448x256")


def test_the_least_share_lets_every_stage_fit() -> None:
    assert least_share([(10, 4), (6, 8)], 12) == Fraction(1, 2)
    assert least_share([(10, 2), (6, 0)], 12) == 0
    assert least_share([(20, 4)], 12) == 1
    assert least_share([(20, 4)], 0) == 0


@pytest.mark.parametrize("text", ["2", "-0.1", "x", "1e3", "1/0", "", "9" * 50])
def test_a_wrong_share_is_one_line(text: str) -> None:
    with pytest.raises(UserError, match="--offload: found"):
        offload_of(text)


def test_a_device_without_such_a_memory_is_refused() -> None:
    with pytest.raises(UserError, match=r"--offload: found no offload\.bandwidth of system 'NVL-AX'"):
        llm("gpt2", "NVL-AX", decode="64", offload="0.5")
    rows = csv_rows("name,peak.bf16 [TFLOP/s],memory.bandwidth [GB/s],offload.capacity [GB]\nx,1,1,1\n")
    with pytest.raises(UserError, match=r"sheet:A2: 'offload\.bandwidth' is missing"):
        sheet_of(rows, "sheet")
