"""The placement of one configuration in the report on a design, and its part of the JSON contract."""

from dataclasses import dataclass
from typing import assert_never

from dfcompile.dfmodel_backend.machine.memory_unit_grid import PmuGrid
from dfcompile.dfmodel_backend.placement.placed_design import PlacedConfiguration
from dfcompile.dfmodel_backend.placement.placement import Cell, PlacedTensor, Role
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.report.figures import Json


@dataclass(frozen=True, slots=True)
class PlacementSummary:
    """One configuration on the grid, with names.

    Attributes:
        grid: of the chip.
        placed: units, wires and links.
        kernels: name of each kernel, in the order of ``placed``.
        ends: names of writer and reader of each tensor, in the order of ``placed``; empty for none.
    """

    grid: PmuGrid
    placed: PlacedConfiguration
    kernels: tuple[str, ...]
    ends: tuple[tuple[str, str], ...]

    @property
    def pcus(self) -> int:
        """PCUs in use."""
        return sum(len(kernel.cells) for kernel in self.placed.units.kernels)

    @property
    def pmus(self) -> int:
        """PMUs in use."""
        return sum(len(tensor.cells) for tensor in self.placed.units.tensors)


def summarize_placement(design: Design, placed: PlacedConfiguration) -> PlacementSummary:
    """Return the summary of a placed configuration of a design."""
    assert design.machine.pmu is not None
    return PlacementSummary(
        grid=design.machine.pmu,
        placed=placed,
        kernels=tuple(design.kernels[kernel.kernel].name for kernel in placed.units.kernels),
        ends=tuple(_ends(design, tensor) for tensor in placed.units.tensors),
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


def placement_record(summary: PlacementSummary) -> Json:
    """Return the plain values of the JSON contract; a cell is the number ``y * columns + x``."""
    units = summary.placed.units

    def numbers(cells: tuple[Cell, ...]) -> list[Json]:
        return [cell.y * summary.grid.x + cell.x for cell in cells]

    return {
        "configuration": summary.placed.configuration,
        "columns": summary.grid.x,
        "rows": summary.grid.y,
        "walk": summary.grid.placement.value,
        "pcus": summary.pcus,
        "pmus": summary.pmus,
        "kernels": [
            {"name": name, "lanes": kernel.split.lanes, "stages": kernel.split.stages, "cells": numbers(kernel.cells)}
            for name, kernel in zip(summary.kernels, units.kernels, strict=True)
        ],
        "tensors": [
            {"role": tensor.role.value, "writer": writer, "reader": reader, "cells": numbers(tensor.cells)}
            for (writer, reader), tensor in zip(summary.ends, units.tensors, strict=True)
        ],
        "wires": [
            {
                "tensor": wires.tensor,
                "kernel": wires.kernel,
                "direction": "out" if wires.is_write else "in",
                "pmu_cells": numbers(tuple(pmu for pmu, _ in wires.pairs)),
                "pcu_cells": numbers(tuple(pcu for _, pcu in wires.pairs)),
            }
            for wires in units.wires
        ],
        "links": [
            {
                "tensor": link.tensor,
                "kernel": link.kernel,
                "direction": "in" if link.is_incoming else "out",
                "dimension": link.dimension,
                "border": link.border.value,
                "cells": numbers(link.cells),
            }
            for link in summary.placed.links
        ],
    }
