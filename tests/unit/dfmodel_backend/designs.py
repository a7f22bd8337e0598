"""Small random designs for the tests of this stage."""

from hypothesis import strategies as st

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.fusion.fusion_problem import FusionProblem
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets import Arcs, arcs_of
from dfcompile.dfmodel_backend.machine.system import Collective, Link
from dfcompile.dfmodel_backend.options import MOST_DOWN_SETS, Overlap
from dfcompile.dfmodel_backend.workload.design import Design, DesignEdge, DesignKernel, Dim
from dfcompile.records import replace
from tests.locations import DESIGNS

TEMPLATE = read_design(DESIGNS / "llm_175B_fwd_kbk_8x1.txt")

SMALL = st.integers(1, 6)
VARIANTS = (
    KernelVariant.GEMM_INPUT1_WEIGHT,
    KernelVariant.GEMM_INPUT1_INPUT2,
    KernelVariant.ELEMENTWISE_INPUT1,
)


@st.composite
def kernels(draw: st.DrawFn, number: int, *, backward: bool | None) -> DesignKernel:
    variant = draw(st.sampled_from(VARIANTS))
    outer, m, n = draw(st.sampled_from([1, 1, 2, 4])), draw(SMALL), draw(SMALL)
    k = draw(SMALL) if variant.is_gemm else 1
    return DesignKernel(
        name=f"k{number}", id=number, pinned_config=-1, backward=backward, systolic=variant.is_gemm, variant=variant,
        outer=outer, m=m, k=k, n=n, input_1_bytes=2 * outer * k * n, input_2_bytes=0, output_bytes=2 * outer * m * n,
        tiling=Dim.N, collective=Collective.NONE, collective_bytes=0, collective_2=Collective.NONE,
        memory_bytes=draw(st.sampled_from([0, 0, 50])), skip_weight=False, use_effective_stage=False, num_input=0,
        sram_extra_bytes=draw(st.sampled_from([0, 0, 30])), dram_extra_bytes=0,
    )  # fmt: skip


@st.composite
def designs(draw: st.DrawFn, most: int = 5) -> Design:
    count = draw(st.integers(1, most))
    first_backward = draw(st.sampled_from([count + 1, count + 1, count, count - 1]))
    of_no_pass = draw(st.sampled_from([0, 0, 1, count - 1]))
    parts = tuple(
        draw(kernels(number, backward=None if number == of_no_pass else number >= first_backward))
        for number in range(1, count + 1)
    )
    edges = tuple(
        DesignEdge(source, target, draw(st.integers(0, 5)) == 0)
        for target in range(2, count + 1)
        for source in range(1, target)
        if draw(st.integers(0, 2)) == 0
    )
    tensor = draw(st.sampled_from([1, 2]))
    link = Link(draw(st.sampled_from(["r", "sw", "fc"])), tensor, draw(st.sampled_from([1.0, 30.0])), "TP", 0.0)
    machine = replace(
        TEMPLATE.machine,
        chips=tensor, cores=draw(st.integers(1, 8)), lanes_per_core=2, stages_per_core=1, frequency_ghz=1.0,
        sram_bytes=draw(st.sampled_from([0.0, 150.0, 400.0, 1000.0])),
        dram_gb_per_s=draw(st.sampled_from([0.5, 4.0, 50.0])), dram_bytes=draw(st.sampled_from([0.0, 0.0, 400.0])),
        topology=link.shape, links=(link,), link_latency_ns=draw(st.sampled_from([0.0, 5.0])),
    )  # fmt: skip
    batch = replace(TEMPLATE.execution.batch, sequence=6, layers=1, global_batch=4, micro_batch=1, tile=0)
    execution = replace(
        TEMPLATE.execution,
        batch=batch,
        kernel_by_kernel=False,
        configurations=draw(st.integers(1, max(1, count - 1))),
        overlap=draw(st.sampled_from(list(Overlap))),
        compute_utilization=draw(st.sampled_from([0.0, 0.5])),
    )
    return Design(parts, edges, machine, execution)


def every_arc(model: DesignModel) -> Arcs:
    """Return all configurations that a design's chain may have."""
    costs = FusionProblem(model)
    lattice = costs.shape.lattice(MOST_DOWN_SETS)
    assert lattice is not None
    return arcs_of(costs.shape, lattice, costs.may_grow)
