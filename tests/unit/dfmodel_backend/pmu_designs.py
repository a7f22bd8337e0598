"""Small random designs with memory units for the tests of this stage."""

from dataclasses import replace

from hypothesis import strategies as st

from dfcompile.dfmodel_backend.design import Design
from dfcompile.dfmodel_backend.pmu_grid import LaneStage, Placement, PmuGrid
from tests.unit.dfmodel_backend.designs import designs


@st.composite
def pmu_designs(draw: st.DrawFn, most: int = 5) -> Design:
    design = draw(designs(most))
    cores = draw(st.sampled_from([2, 4, 6, 8, 9]))
    grid = PmuGrid(
        draw(st.sampled_from([1, 3, 6, 9, 14, 20, 40])), draw(st.sampled_from([6.0, 20.0, 64.0])), 0, 0, Placement.NONE
    )
    machine = replace(
        design.machine, cores=cores, lanes_per_core=draw(st.integers(1, 2)), stages_per_core=draw(st.integers(1, 3)),
        pmu=grid,
    )  # fmt: skip
    kernels = tuple(
        replace(
            kernel,
            skip_weight=kernel.has_weight and draw(st.integers(0, 4)) == 0,
            systolic=draw(st.integers(0, 7)) == 0 or kernel.systolic,
        )
        for kernel in design.kernels
    )
    labels = st.sampled_from([None, None, None, LaneStage.LANE, LaneStage.STAGE])
    edges = tuple(replace(edge, label=draw(labels)) for edge in design.edges)
    return Design(kernels, edges, machine, replace(design.execution, compute_utilization=0.0))
