"""Figures of small designs, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT
from dfcompile.dfmodel_backend.design_file.reading import parse_design
from dfcompile.dfmodel_backend.evaluate.designs import Decision, evaluate_design
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel, dram_need
from dfcompile.dfmodel_backend.machine.system import Collective, Link
from dfcompile.dfmodel_backend.workload.design import Design, DesignEdge, DesignKernel, Dim
from dfcompile.records import replace
from tests.examples import examples
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.designs import TEMPLATE, designs

ONE_CHIP = replace(
    TEMPLATE.machine, chips=1, dram_gb_per_s=1.0, links=(replace(TEMPLATE.machine.links[0], chips=1),), topology="r"
)


def gemm(
    number: int, tiling: Dim = Dim.N, collective: Collective = Collective.NONE, num_input: int = 0
) -> DesignKernel:
    """A product of a weight of 4 x 6 and an input of 6 x 8, of 2 bytes an element."""
    return DesignKernel(
        name=f"g{number}", id=number, pinned_config=-1, backward=False, systolic=True,
        variant=KernelVariant.GEMM_INPUT1_WEIGHT, outer=1, m=4, k=6, n=8, input_1_bytes=96, input_2_bytes=0,
        output_bytes=64, tiling=tiling, collective=collective, collective_bytes=0, collective_2=Collective.NONE,
        memory_bytes=0, skip_weight=False, use_effective_stage=False, num_input=num_input, sram_extra_bytes=0,
        dram_extra_bytes=0,
    )  # fmt: skip


def design(*kernels: DesignKernel, edges: tuple[DesignEdge, ...] = (), configurations: int = 1) -> Design:
    batch = replace(TEMPLATE.execution.batch, layers=1, global_batch=1, micro_batch=1, sequence=8, tile=0)
    execution = replace(TEMPLATE.execution, batch=batch, kernel_by_kernel=False, configurations=configurations)
    return Design(kernels, edges, ONE_CHIP, execution)


@pytest.mark.parametrize(("overlap", "counted"), [("NO_OVERLAP", "C"), ("PERFECT_OVERLAP", "CMN")])
def test_parts_are_left_out_of_sums_alone(overlap: str, counted: str) -> None:
    text = (DESIGNS / "llm_1T_fwd_joint_CMN.txt").read_text().replace('optimization: "CMN"', 'optimization: "C"')

    assert parse_design(text.replace("NO_OVERLAP", overlap), "x.txt").execution.counted == counted


@pytest.mark.parametrize("tiling", [Dim.N, Dim.M, Dim.K, Dim.NONE])
def test_weights_are_whole_however_a_kernel_is_tiled(tiling: Dim) -> None:
    """Two tiles of a dimension of a weight are read both, and lie in DRAM both."""
    one = design(gemm(1, tiling))
    model = DesignModel(one, {}, 2)

    assert model.held.moved.tolist() == [48.0]
    assert dram_need(model).weights == 48.0
    original = DesignModel(one, {}, 2, ORIGINAL)
    assert dram_need(original).weights == (24.0 if tiling in (Dim.M, Dim.K) else 48.0)


def on_chips_of_a_batch(one: Design, chips: int) -> Design:
    """Return a design on chips that have an input of a batch each."""
    link = replace(ONE_CHIP.links[0], chips=chips, parallelism="DP")
    batch = replace(one.execution.batch, global_batch=chips)
    return replace(
        one, machine=replace(ONE_CHIP, chips=chips, links=(link,)), execution=replace(one.execution, batch=batch)
    )


@pytest.mark.parametrize("collective", [Collective.ALL_REDUCE_PERIODIC, Collective.ALL_REDUCE])
def test_a_chip_alone_exchanges_nothing(collective: Collective) -> None:
    """Whatever the file says of its kernels."""
    one = design(gemm(1, collective=collective))
    decision = Decision({}, 1, {1: 0})

    assert evaluate_design(one, decision).network_traffic_bytes == 0
    assert evaluate_design(one, decision, ORIGINAL).network_traffic_bytes == 64


@pytest.mark.parametrize("tiling", [Dim.N, Dim.M, Dim.K])
def test_gradients_are_exchanged_whole_once_a_batch(tiling: Dim) -> None:
    one = design(gemm(1, tiling, Collective.ALL_REDUCE_PERIODIC))
    steps = DesignModel(on_chips_of_a_batch(one, 2), {}, 2).steps(np.ones((1, 1), bool))

    assert steps.network_bytes.tolist() == [64.0]  # 4 x 8 elements
    assert steps.dram_bytes.tolist() == [48.0 + 2 * 64]  # the weight is read, the gradient read and written


def test_nothing_waits_while_an_empty_configuration_runs() -> None:
    """Kernels of several inputs let one tile wait; an empty configuration between them has no tiles."""
    one = design(
        gemm(1, num_input=2), gemm(2, num_input=2), edges=(DesignEdge(1, 2, zero_out=False),), configurations=3
    )
    figures = evaluate_design(one, Decision({}, 4, {1: 0, 2: 2}), RIGHT)

    assert [step.live_bytes for step in figures.steps] == [16.0, 0.0, 16.0]
    assert figures.dram_bytes == 2 * 48 + 16


def test_more_weights_than_edges_may_take_the_sram_of_other_edges() -> None:
    one = design(gemm(1), gemm(2), gemm(3), edges=(DesignEdge(2, 3, zero_out=False),))
    figures = evaluate_design(one, Decision({}, 1, {1: 0, 2: 0, 3: 0}), ORIGINAL)

    assert figures.steps[0].sram_bytes == 3 * 48 + 2 * 64


def pipelined(layers: int = 8, global_batch: int = 12) -> Design:
    """8 layers in 4 stages of 2 chips each, which share a kernel; one input at a time, 0.5 GB/s between chips."""
    one = design(gemm(1, Dim.NONE))
    tensor, pipeline = (
        replace(TEMPLATE.machine.links[0], shape="r", chips=chips, gb_per_s=0.5, parallelism=parallelism)
        for chips, parallelism in ((2, "TP"), (4, "PP"))
    )
    batch = replace(one.execution.batch, layers=layers, global_batch=global_batch, hidden=16, sequence=8)
    return replace(
        one,
        machine=replace(ONE_CHIP, chips=8, links=(tensor, pipeline), topology="r_r", link_latency_ns=7.0),
        execution=replace(one.execution, batch=batch),
    )


def test_an_input_runs_through_all_stages_and_over_the_links_between() -> None:
    """Of 16 x 8 elements of 2 bytes each chip of two hands on half, three times."""
    figures = evaluate_design(pipelined(), Decision({1: Dim.K}, 1, {1: 0}), RIGHT)

    assert figures.latency_ns == pytest.approx(8 * figures.step_ns + 3 * (16 * 8 * 2 / (2 * 0.5) + 7.0))


def test_traffic_of_a_batch_is_that_of_all_layers_inputs_and_chips() -> None:
    """Each of 2 chips reads half of the weight, 4 x 3 elements, and reduces an output of 4 x 8."""
    figures = evaluate_design(pipelined(), Decision({1: Dim.K}, 1, {1: 0}), RIGHT)
    (step,) = figures.steps

    assert (step.dram_bytes, step.network_bytes) == (4 * 3 * 2, 4 * 8 * 2)
    assert figures.dram_traffic_bytes == 12 * 8 * 2 * step.dram_bytes
    assert figures.network_traffic_bytes == 12 * 8 * 2 * step.network_bytes


@pytest.mark.parametrize(("inputs", "expected"), [(0, 48.0), (1, 48.0), (2, 24.0), (4, 12.0)])
def test_inputs_that_a_kernel_runs_together_share_its_weight(inputs: int, expected: float) -> None:
    model = DesignModel(design(gemm(1, num_input=inputs)), {}, 2)

    assert model.held.moved.tolist() == [expected]


def test_the_pipeline_fills_and_drains() -> None:
    """12 micro-batches of one input; of the two layers of a stage one hides what the other waits for."""
    figures = evaluate_design(pipelined(), Decision({}, 1, {1: 0}), RIGHT)

    assert figures.bubble == 1 + (4 - 1) / 12
    assert figures.batch_ns == pytest.approx(figures.step_ns * figures.bubble * 2 * 12)


LONE = st.sampled_from([("PP",), ("DP",), ("PP", "DP")])


@examples(60)
@given(designs(), LONE, st.sampled_from(["r", "fc", "sw"]), st.sampled_from([1e-6, 30.0]), st.booleans())
def test_a_group_of_one_chip_takes_no_time_and_moves_nothing(
    drawn: Design, lone: tuple[str, ...], shape: str, gb_per_s: float, is_trained: bool
) -> None:
    """Neither does it exchange gradients, nor hand anything on, however slow its links are."""
    parts = tuple(replace(kernel, backward=is_trained) for kernel in drawn.kernels)
    machine = replace(drawn.machine, sram_bytes=0.0, dram_bytes=0.0, cores=8)
    batch = replace(drawn.execution.batch, layers=3)
    one = replace(drawn, kernels=parts, machine=machine, execution=replace(drawn.execution, batch=batch))
    links = (*machine.links, *(Link(shape, 1, gb_per_s, name, 0.0) for name in lone))
    other = replace(one, machine=replace(machine, links=links, topology="_".join(link.shape for link in links)))
    decision = Decision({}, 1, {kernel.id: place for place, kernel in enumerate(parts)})

    alone, beside = (evaluate_design(each, decision, RIGHT) for each in (one, other))

    assert replace(beside, cost_usd=alone.cost_usd, power_w=alone.power_w) == alone  # its links are paid
