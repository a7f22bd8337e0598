"""Figures of a report on a design, by hand: one product that two chips share in each of four stages."""

import pytest

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.machine.system import Collective
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution, solve_design
from dfcompile.dfmodel_backend.workload.design import Design, DesignKernel, Dim
from dfcompile.records import replace
from dfcompile.report.design.summary import summarize_design
from tests.unit.dfmodel_backend.designs import TEMPLATE

LAYERS, INPUTS = 8, 12
TENSOR, STAGES = 2, 4


def product() -> DesignKernel:
    """A weight of 4 x 6 times an input of 6 x 8, of 2 bytes an element; its contraction is split."""
    return DesignKernel(
        name="product", id=1, pinned_config=-1, backward=False, systolic=True,
        variant=KernelVariant.GEMM_INPUT1_WEIGHT, outer=1, m=4, k=6, n=8, input_1_bytes=96, input_2_bytes=0,
        output_bytes=64, tiling=Dim.NONE, collective=Collective.NONE, collective_bytes=0,
        collective_2=Collective.NONE, memory_bytes=0, skip_weight=False, use_effective_stage=False, num_input=0,
        sram_extra_bytes=0, dram_extra_bytes=0, pinned_sharding=Dim.K,
    )  # fmt: skip


@pytest.fixture(scope="module")
def solution() -> DesignSolution:
    links = tuple(
        replace(TEMPLATE.machine.links[0], shape="r", chips=chips, gb_per_s=0.5, parallelism=parallelism)
        for chips, parallelism in ((TENSOR, "TP"), (STAGES, "PP"))
    )
    machine = replace(
        TEMPLATE.machine, chips=TENSOR * STAGES, links=links, topology="r_r", dram_gb_per_s=1.0, link_latency_ns=7.0
    )
    batch = replace(
        TEMPLATE.execution.batch, layers=LAYERS, layers_in_graph=1, global_batch=INPUTS, micro_batch=1, tile=8,
        hidden=16, sequence=8,
    )  # fmt: skip
    execution = replace(TEMPLATE.execution, batch=batch, kernel_by_kernel=False, configurations=1)
    return solve_design(Design((product(),), (), machine, execution), DesignOptions())


def test_latency_is_that_of_an_input_through_all_layers_and_links(solution: DesignSolution) -> None:
    figures = summarize_design("product", solution, (), ()).figures
    link_ns = 16 * 8 * 2 / (TENSOR * 0.5) + 7.0  # each of two chips hands on half of the elements

    assert figures.latency_s == pytest.approx((LAYERS * solution.figures.step_ns + 3 * link_ns) / 1e9)


def test_traffic_is_that_of_a_batch_and_all_chips(solution: DesignSolution) -> None:
    figures = summarize_design("product", solution, (), ()).figures
    runs = LAYERS * INPUTS * TENSOR

    assert figures.dram_traffic_bytes == runs * 4 * 3 * 2  # half of the weight
    assert figures.network_traffic_bytes == runs * 4 * 8 * 2  # parts of the output, to be added up


def test_sharding_moves_the_output_that_is_added_up(solution: DesignSolution) -> None:
    assert summarize_design("product", solution, (), ()).figures.sharding_bytes == 64
