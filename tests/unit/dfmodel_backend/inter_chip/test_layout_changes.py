"""What a tensor costs that its consumer needs in another layout, and what lies in DRAM beside a problem's data."""

import numpy as np
import pytest

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT, Compatibility
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.system import Collective, Link
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from dfcompile.dfmodel_backend.workload.design import Design, DesignEdge, DesignKernel, Dim
from dfcompile.records import replace
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.designs import TEMPLATE

CHIPS = 4
GB_PER_S = 2.0
WHOLE = 64 * 32 * 2  # bytes of the tensor between the two kernels


def change_ns(shape: str, needed: Dim, compatibility: Compatibility) -> float:
    """Return the time of exchange of a tensor split by rows that its consumer needs as if split by ``needed``."""
    first = DesignKernel(
        name="first", id=1, pinned_config=-1, backward=None, systolic=False, variant=KernelVariant.ELEMENTWISE_INPUT1,
        outer=1, m=64, k=1, n=32, input_1_bytes=WHOLE, input_2_bytes=0, output_bytes=WHOLE, tiling=Dim.N,
        collective=Collective.NONE, collective_bytes=0, collective_2=Collective.NONE, memory_bytes=0,
        skip_weight=False, use_effective_stage=False, num_input=0, sram_extra_bytes=0, dram_extra_bytes=0,
    )  # fmt: skip
    link = Link(shape, CHIPS, GB_PER_S, "TP", 0.0)
    machine = replace(TEMPLATE.machine, chips=CHIPS, topology=shape, links=(link,), link_latency_ns=0.0)
    execution = replace(TEMPLATE.execution, batch=replace(TEMPLATE.execution.batch, layers=1))
    kernels = (first, replace(first, name="second", id=2))
    design = Design(kernels, (DesignEdge(1, 2, zero_out=False),), machine, execution)
    model = DesignModel(design, {1: Dim.M, 2: needed}, 1, compatibility)
    return float(model.steps(np.array([[True, True]])).network_ns[0])


@pytest.mark.parametrize(
    ("shape", "per_byte"),
    [("r", (CHIPS - 1) / CHIPS), ("sw", (CHIPS - 1) / CHIPS), ("fc", 1 / CHIPS)],
)
def test_an_all_gather_brings_each_chip_what_it_has_not(shape: str, per_byte: float) -> None:
    assert change_ns(shape, Dim.NONE, RIGHT) == pytest.approx(WHOLE * per_byte / GB_PER_S)
    assert change_ns(shape, Dim.NONE, ORIGINAL) == pytest.approx(WHOLE / CHIPS * per_byte / GB_PER_S)


@pytest.mark.parametrize(
    ("shape", "right", "original"),
    [
        ("r", 1 / 8, CHIPS / 8),  # a quarter crosses the middle, over two links
        ("sw", (CHIPS - 1) / CHIPS**2, 1 / 4),  # each chip sends its share but its own part of it
        ("fc", 1 / CHIPS**2, 1 / CHIPS),  # each pair has a link
    ],
)
def test_an_all_to_all_sends_a_part_of_each_share_to_each_chip(shape: str, right: float, original: float) -> None:
    assert change_ns(shape, Dim.N, RIGHT) == pytest.approx(WHOLE * right / GB_PER_S)
    assert change_ns(shape, Dim.N, ORIGINAL) == pytest.approx(WHOLE * original / GB_PER_S)


def test_an_all_to_all_is_never_slower_than_an_all_gather() -> None:
    for shape in ("r", "sw", "fc"):
        assert change_ns(shape, Dim.N, RIGHT) <= change_ns(shape, Dim.NONE, RIGHT)


def test_published_memory_of_a_fourier_transform_is_the_vector_alone() -> None:
    """Its log: FFT_dram_size 4194296875.0."""
    design = read_design(DESIGNS / "fft_a100_1024.txt")

    logged = solve_design(design, DesignOptions(compatibility=ORIGINAL)).figures
    right = solve_design(design, DesignOptions(compatibility=RIGHT)).figures

    assert logged.dram_bytes == 4194296875.0
    assert right.dram_bytes > logged.dram_bytes
