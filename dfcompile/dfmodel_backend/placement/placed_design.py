"""The placement of all configurations of a solved design, and where their tensors leave the chip [ko24].

Routers lie around the grid. What comes from DRAM or goes there takes the border nearest to its cell, of equally near
ones left before right before top before bottom. In topologies of one or two dimensions the first dimension lies along
``x`` and the second along ``y``: what comes from other chips enters at the left or the top, what goes to them leaves at
the right or the bottom. Topologies of more dimensions have no border per dimension: the nearest one is taken.
"""

from collections.abc import Iterator
from enum import StrEnum, unique
from typing import assert_never

from msgspec import Struct

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.evaluate.designs import Decision, DesignFigures
from dfcompile.dfmodel_backend.inter_chip.shares import EdgeShare
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.machine import Collective, Placement, PmuGrid
from dfcompile.dfmodel_backend.placement.placement import Cell, PlacedUnits, Role, UnitGraph, place_units
from dfcompile.dfmodel_backend.workload.design import Design, WorkloadKind


@unique
class Border(StrEnum):
    """Of the grid: ``x = 0``, last ``x``, ``y = 0``, last ``y``."""

    LEFT = "left"
    RIGHT = "right"
    TOP = "top"
    BOTTOM = "bottom"


class RouterLink(Struct, frozen=True):
    """What one tensor, or what one kernel exchanges, has to do with one border.

    Attributes:
        tensor: number in the configuration; None for the results of a kernel, which it exchanges with other chips.
        kernel: number in the configuration of the kernel that writes or reads it.
        is_incoming: whether it comes in.
        dimension: of the network; None for DRAM.
        border: that it passes.
        cells: PMUs of the tensor, or PCUs of the kernel, that use it.
    """

    tensor: int | None
    kernel: int
    is_incoming: bool
    dimension: int | None
    border: Border
    cells: tuple[Cell, ...]


Passage = tuple[int | None, int, tuple[Cell, ...], tuple[int | None, ...], bool]  # a router link in all its dimensions


def router_links(model: DesignModel, decision: Decision, grid: PmuGrid, placed: PlacedUnits) -> tuple[RouterLink, ...]:
    """Return the links of a configuration: tensors in their order, then what its kernels exchange."""
    links = []
    for tensor, kernel, cells, dimensions, is_incoming in _passages(model, decision, placed):
        for dimension in dimensions:
            by_border: dict[Border, list[Cell]] = {}
            for cell in cells:
                border = nearest_border(cell, grid)
                if dimension is not None and len(model.design.machine.links) <= 2:
                    border = _SIDES[min(dimension, 1)][is_incoming]
                by_border.setdefault(border, []).append(cell)
            links += [
                RouterLink(tensor, kernel, is_incoming, dimension, border, tuple(by_border[border]))
                for border in Border
                if border in by_border
            ]
    return tuple(links)


_SIDES = ((Border.RIGHT, Border.LEFT), (Border.BOTTOM, Border.TOP))  # out and in, of the first and second dimension


def _passages(model: DesignModel, decision: Decision, placed: PlacedUnits) -> Iterator[Passage]:
    """Yield the numbers of a tensor and of its kernel, the cells that use the link, its dimensions, and whether in."""
    place = {kernel.kernel: number for number, kernel in enumerate(placed.kernels)}
    for number, tensor in enumerate(placed.tensors):
        match tensor.role:
            case Role.WEIGHTS:
                yield number, place[tensor.number], tensor.cells, (None,), True
            case Role.TENSOR:
                edge = model.edges[tensor.number]
                writer, reader = place.get(edge.source), place.get(edge.target)
                outside = _partners(model.design, decision, edge)
                if writer is None:
                    assert reader is not None
                    yield number, reader, tensor.cells, outside, True
                    continue
                if reader is None:
                    yield number, writer, tensor.cells, outside, False
                for collective, _ in edge.exchange:
                    dimensions = exchange_dimensions(model.design, collective)
                    yield from ((number, writer, tensor.cells, dimensions, is_in) for is_in in (False, True))
            case Role.ADDED:
                pass
            case _:
                assert_never(tensor.role)
    for number, kernel in enumerate(placed.kernels):
        for collective, _ in model.shares[kernel.kernel].exchange:
            dimensions = exchange_dimensions(model.design, collective)
            yield from ((None, number, kernel.outlets, dimensions, is_in) for is_in in (False, True))


def _partners(design: Design, decision: Decision, edge: EdgeShare) -> tuple[int | None, ...]:
    """Return the dimensions over which a tensor between configurations goes: of the pipeline, or DRAM."""
    first, second = (decision.configs[design.kernels[kernel].id] for kernel in (edge.source, edge.target))
    if not decision.stages or decision.stages[first] == decision.stages[second]:
        return (None,)
    return tuple(number for number, link in enumerate(design.machine.links) if link.parallelism == "PP")


def nearest_border(cell: Cell, grid: PmuGrid) -> Border:
    """Return the border that fewest cells lie before."""
    distances = {
        Border.LEFT: cell.x,
        Border.RIGHT: grid.x - 1 - cell.x,
        Border.TOP: cell.y,
        Border.BOTTOM: grid.y - 1 - cell.y,
    }
    return min(distances, key=lambda border: distances[border])


def exchange_dimensions(design: Design, collective: Collective) -> tuple[int, ...]:
    """Return the dimensions of the network, of more than one chip, over which a collective goes."""
    links = design.machine.links
    kind = design.execution.batch.kind
    match kind:
        case WorkloadKind.LLM:
            group = "DP" if collective is Collective.ALL_REDUCE_PERIODIC else "TP"
            found = [number for number, link in enumerate(links) if link.parallelism == group]
        case WorkloadKind.HPL:
            found = [0] if collective is Collective.POINT_TO_POINT else [len(links) - 1]
        case WorkloadKind.DLRM | WorkloadKind.FFT:
            found = list(range(len(links)))
        case _:
            assert_never(kind)
    return tuple(number for number in found if links[number].chips > 1)


class PlacedConfiguration(Struct, frozen=True):
    """One configuration on the grid."""

    configuration: int
    units: PlacedUnits
    links: tuple[RouterLink, ...]


def place_design(
    design: Design, decision: Decision, figures: DesignFigures, compatibility: Compatibility = RIGHT
) -> tuple[PlacedConfiguration, ...]:
    """Place the units of each configuration that has kernels; nothing if the design has no grid.

    Raises:
        UserError: the grid has fewer cells than units.
    """
    grid = design.machine.pmu
    if grid is None or grid.placement is Placement.NONE:
        return ()
    model = DesignModel(design, decision.sharding, decision.tiles, compatibility)
    assert model.pmu is not None
    ends = tuple((edge.source, edge.target) for edge in model.edges)
    graph = UnitGraph(model.pmu.order(range(len(model.shares))), ends, model.pmu.labels)
    found = []
    for number, step in enumerate(figures.steps):
        if step.units is not None:
            placed = place_units(grid, graph, step.units)
            found.append(PlacedConfiguration(number, placed, router_links(model, decision, grid, placed)))
    return tuple(found)
