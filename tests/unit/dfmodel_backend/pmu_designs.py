"""Small random designs with memory units for the tests of this stage, by seed: cores and units are both scarce."""

import random

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.system import Collective, LaneStage, Link, Placement, PmuGrid
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.dfmodel_backend.workload.design import Design, DesignEdge, DesignKernel, Dim
from dfcompile.records import replace
from tests.unit.dfmodel_backend.designs import TEMPLATE

VARIANTS = (
    KernelVariant.GEMM_INPUT1_WEIGHT,
    KernelVariant.GEMM_INPUT1_WEIGHT,
    KernelVariant.GEMM_INPUT1_INPUT2,
    KernelVariant.ELEMENTWISE_INPUT1,
)


def random_kernel(number: int, rng: random.Random) -> DesignKernel:
    """Return a kernel that is free to go anywhere."""
    variant = rng.choice(VARIANTS)
    m, n = rng.choice([4, 8, 15, 30]), rng.choice([2, 6, 12])
    k = rng.choice([1, 2, 8]) if variant.is_gemm else 1
    return DesignKernel(
        name=f"k{number}", id=number, pinned_config=-1, backward=False, systolic=variant.is_gemm, variant=variant,
        outer=1, m=m, k=k, n=n, input_1_bytes=0, input_2_bytes=0, output_bytes=2 * m * n, tiling=Dim.N,
        collective=Collective.NONE, collective_bytes=0, collective_2=Collective.NONE,
        memory_bytes=rng.choice([0, 0, 50]), skip_weight=variant.is_gemm and rng.random() < 0.2,
        use_effective_stage=False, num_input=0, sram_extra_bytes=rng.choice([0, 0, 30]), dram_extra_bytes=0,
    )  # fmt: skip


def random_design(rng: random.Random, most: int = 5) -> Design:
    """Return a design of up to so many kernels."""
    count = rng.randint(1, most)
    edges = tuple(
        DesignEdge(source, target, rng.random() < 0.1, rng.choice([None, None, None, LaneStage.LANE, LaneStage.STAGE]))
        for target in range(2, count + 1)
        for source in range(1, target)
        if rng.random() < (0.8 if source + 1 == target else 0.3)
    )
    tensor = rng.choice([1, 2])
    link = Link("r", tensor, rng.choice([1.0, 30.0]), "TP", 0.0)
    machine = replace(
        TEMPLATE.machine,
        chips=tensor, cores=rng.choice([2, 4, 6, 8, 9]), lanes_per_core=rng.choice([1, 2]),
        stages_per_core=rng.choice([1, 2, 3]), frequency_ghz=1.0, sram_bytes=100.0,
        dram_gb_per_s=rng.choice([0.5, 4.0, 50.0]), dram_bytes=rng.choice([0.0, 0.0, 2000.0]), topology="r",
        links=(link,), link_latency_ns=rng.choice([0.0, 5.0]),
        pmu=PmuGrid(rng.choice([3, 6, 9, 14, 20]), rng.choice([20.0, 64.0, 300.0]), 0, 0, Placement.NONE),
    )  # fmt: skip
    batch = replace(TEMPLATE.execution.batch, sequence=12, layers=1, global_batch=4, micro_batch=1, tile=0)
    execution = replace(
        TEMPLATE.execution,
        batch=batch,
        kernel_by_kernel=False,
        configurations=rng.randint(1, max(1, count - 1)),
        overlap=rng.choice(list(Overlap)),
        compute_utilization=0.0,
    )
    return Design(tuple(random_kernel(number, rng) for number in range(1, count + 1)), edges, machine, execution)


def random_model(rng: random.Random, most: int = 5, compatibility: Compatibility = RIGHT) -> DesignModel:
    """Return a random design with a random sharding, in one tile or a few."""
    design = random_design(rng, most)
    sharding = {kernel.id: rng.choice([Dim.M, Dim.NONE]) for kernel in design.kernels}
    return DesignModel(design, sharding, rng.choice([1, 2, 3]), compatibility)


def with_pmus(design: Design, pmus: int) -> Design:
    """Return the design with another number of memory units."""
    assert design.machine.pmu is not None
    return replace(design, machine=replace(design.machine, pmu=replace(design.machine.pmu, pmus=max(1, pmus))))
