"""Sums up the placement of a configuration, with names."""

from collections.abc import Iterable
from typing import assert_never

from dfcompile.dfmodel_backend.placement.placed_design import PlacedConfiguration
from dfcompile.dfmodel_backend.placement.placement import Cell, PlacedTensor, Role
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.report.design.placement import (
    LinkSummary,
    PlacedKernelSummary,
    PlacedTensorSummary,
    PlacementSummary,
    WiresSummary,
)


def summarize_placement(design: Design, placed: PlacedConfiguration) -> PlacementSummary:
    """Return the summary of a placed configuration of a design."""
    grid, units = design.machine.pmu, placed.units
    assert grid is not None
    columns = grid.x

    def numbers(cells: Iterable[Cell]) -> tuple[int, ...]:
        return tuple(cell.y * columns + cell.x for cell in cells)

    return PlacementSummary(
        configuration=placed.configuration,
        columns=columns,
        rows=grid.y,
        walk=grid.placement.value,
        pcus=sum(len(kernel.cells) for kernel in units.kernels),
        pmus=sum(len(tensor.cells) for tensor in units.tensors),
        kernels=tuple(
            PlacedKernelSummary(
                design.kernels[kernel.kernel].name, kernel.split.lanes, kernel.split.stages, numbers(kernel.cells)
            )
            for kernel in units.kernels
        ),
        tensors=tuple(
            PlacedTensorSummary(tensor.role.value, *_ends(design, tensor), numbers(tensor.cells))
            for tensor in units.tensors
        ),
        wires=tuple(
            WiresSummary(
                tensor=wires.tensor,
                kernel=wires.kernel,
                direction="out" if wires.is_write else "in",
                pmu_cells=numbers(pmu for pmu, _ in wires.pairs),
                pcu_cells=numbers(pcu for _, pcu in wires.pairs),
            )
            for wires in units.wires
        ),
        links=tuple(
            LinkSummary(
                tensor=link.tensor,
                kernel=link.kernel,
                direction="in" if link.is_incoming else "out",
                dimension=link.dimension,
                border=link.border.value,
                cells=numbers(link.cells),
            )
            for link in placed.links
        ),
    )


def _ends(design: Design, tensor: PlacedTensor) -> tuple[str, str]:
    match tensor.role:
        case Role.WEIGHTS | Role.ADDED:
            return "", design.kernels[tensor.number].name
        case Role.TENSOR:
            names = {kernel.id: kernel.name for kernel in design.kernels}
            edge = design.edges[tensor.number]
            return names[edge.source], names[edge.target]
    assert_never(tensor.role)
