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
from dfcompile.dfmodel_backend.intra_chip.memory_units.needs import labels_of
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.machine import Collective, Placement, PmuGrid
from dfcompile.dfmodel_backend.placement.placement import Cell, PlacedUnits, Role, UnitGraph, place_units
from dfcompile.dfmodel_backend.workload.design import Design, WorkloadKind
from dfcompile.dfmodel_backend.workload.topological_order import topological_numbers


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


def router_links(model: DesignModel, decision: Decision, placed: PlacedUnits) -> tuple[RouterLink, ...]:
    """Return the links of a configuration: tensors in their order, then what its kernels exchange."""
    return tuple(_Links(model, decision, placed).all())


class _Links:
    def __init__(self, model: DesignModel, decision: Decision, placed: PlacedUnits) -> None:
        grid = model.design.machine.pmu
        assert grid is not None
        self._grid: PmuGrid = grid
        self._model = model
        self._decision = decision
        self._placed = placed
        self._place = {kernel.kernel: number for number, kernel in enumerate(placed.kernels)}

    def all(self) -> Iterator[RouterLink]:
        for number, tensor in enumerate(self._placed.tensors):
            match tensor.role:
                case Role.WEIGHTS:
                    place = self._place[tensor.number]
                    yield from self._passing(number, place, tensor.cells, (None,), is_incoming=True)
                case Role.TENSOR:
                    yield from self._of_connection(number)
                case Role.ADDED:
                    pass
                case _:
                    assert_never(tensor.role)
        for number, kernel in enumerate(self._placed.kernels):
            for collective, _ in self._model.shares[kernel.kernel].exchange:
                yield from self._exchange(None, number, kernel.outlets, collective)

    def _of_connection(self, number: int) -> Iterator[RouterLink]:
        tensor = self._placed.tensors[number]
        edge = self._model.edges[tensor.number]
        writer, reader = self._place.get(edge.source), self._place.get(edge.target)
        if writer is None and reader is not None:
            dimensions = self._partners(edge.source, edge.target)
            yield from self._passing(number, reader, tensor.cells, dimensions, is_incoming=True)
        elif writer is not None:
            if reader is None:
                dimensions = self._partners(edge.source, edge.target)
                yield from self._passing(number, writer, tensor.cells, dimensions, is_incoming=False)
            for collective, _ in edge.exchange:
                yield from self._exchange(number, writer, tensor.cells, collective)

    def _partners(self, source: int, target: int) -> tuple[int | None, ...]:
        """Return the dimensions over which a tensor between configurations goes: of the pipeline, or DRAM."""
        kernels, stages = self._model.design.kernels, self._decision.stages
        first, second = (self._decision.configs[kernels[kernel].id] for kernel in (source, target))
        if not stages or stages[first] == stages[second]:
            return (None,)
        return tuple(
            number for number, link in enumerate(self._model.design.machine.links) if link.parallelism == "PP"
        )  # fmt: skip

    def _exchange(
        self, tensor: int | None, kernel: int, cells: tuple[Cell, ...], collective: Collective
    ) -> Iterator[RouterLink]:
        dimensions = exchange_dimensions(self._model.design, collective)
        for is_incoming in (False, True):
            yield from self._passing(tensor, kernel, cells, dimensions, is_incoming=is_incoming)

    def _passing(
        self,
        tensor: int | None,
        kernel: int,
        cells: tuple[Cell, ...],
        dimensions: tuple[int | None, ...],
        *,
        is_incoming: bool,
    ) -> Iterator[RouterLink]:
        for dimension in dimensions:
            by_border: dict[Border, list[Cell]] = {}
            for cell in cells:
                by_border.setdefault(self._border(cell, dimension, is_incoming=is_incoming), []).append(cell)
            for border in Border:
                if border in by_border:
                    yield RouterLink(tensor, kernel, is_incoming, dimension, border, tuple(by_border[border]))

    def _border(self, cell: Cell, dimension: int | None, *, is_incoming: bool) -> Border:
        if dimension is None or len(self._model.design.machine.links) > 2:
            return nearest_border(cell, self._grid)
        if dimension == 0:
            return Border.LEFT if is_incoming else Border.RIGHT
        return Border.TOP if is_incoming else Border.BOTTOM


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
    ends = tuple((edge.source, edge.target) for edge in model.edges)
    levels = topological_numbers(len(design.kernels), list(ends))
    order = tuple(sorted(range(len(levels)), key=lambda kernel: (levels[kernel], kernel)))
    graph = UnitGraph(order, ends, labels_of(design))
    found = []
    for number, step in enumerate(figures.steps):
        if step.units is not None:
            placed = place_units(grid, graph, step.units)
            found.append(PlacedConfiguration(number, placed, router_links(model, decision, placed)))
    return tuple(found)
