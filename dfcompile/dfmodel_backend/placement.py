"""Places the units of each configuration on the chip's checkerboard: a cell for each PCU (core) and PMU [ko24].

Cells with odd ``x + y`` hold PCUs, the others PMUs. A walk goes through all cells, by rows or by diagonals; each unit
takes the next free cell of its kind. Kernels come in topological order, each with the PMUs of its weights, of what the
design adds, of the tensors that it reads, its PCUs, and the PMUs of what it hands to other configurations.

Rows of a tensor go to lanes, columns to stages. The PCUs of a kernel pass data on to each other, so that wires end at
the rim of its lanes by stages: rows enter at the first PCU of each lane, columns at each PCU of the first lane, and
results leave from the last PCU of each lane. Both ends of a wire go through their units in order, in blocks as even as
possible, until every unit has one.

Routers lie around the grid. What comes from DRAM or goes there takes the border nearest to its cell, of equally near
ones left before right before top before bottom. In topologies of one or two dimensions the first dimension lies along
``x`` and the second along ``y``: what comes from other chips enters at the left or the top, what goes to them leaves at
the right or the bottom. Topologies of more dimensions have no border per dimension: the nearest one is taken.
"""

from collections.abc import Iterator
from enum import StrEnum, unique
from itertools import islice
from typing import NamedTuple, assert_never

from msgspec import Struct

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.evaluate.designs import Decision, DesignFigures
from dfcompile.dfmodel_backend.inter_chip.shares import EdgeShare
from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit
from dfcompile.dfmodel_backend.intra_chip.memory_units import Allocation
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.system import Collective, LaneStage, Placement, PmuGrid
from dfcompile.dfmodel_backend.workload.design import Design, WorkloadKind
from dfcompile.errors import InternalError, UserError


class Cell(NamedTuple):
    """A cell of the grid, from 0."""

    x: int
    y: int

    @property
    def is_pcu(self) -> bool:
        """Whether it holds a compute unit."""
        return (self.x + self.y) % 2 == 1


@unique
class Role(StrEnum):
    """What PMUs hold."""

    TENSOR = "tensor"
    WEIGHTS = "weights"
    ADDED = "added"  # what the design adds to the SRAM of a kernel


class PlacedKernel(Struct, frozen=True):
    """PCUs of one kernel, lane by lane, in a lane stage by stage."""

    kernel: int  # position in the design
    split: CoreSplit
    cells: tuple[Cell, ...]

    def inlets(self, label: LaneStage) -> tuple[Cell, ...]:
        """Return the PCUs where rows (of lanes) or columns (of stages) come in."""
        stages = self.split.stages
        return {LaneStage.LANE: self.cells[::stages], LaneStage.STAGE: self.cells[:stages]}[label]

    @property
    def outlets(self) -> tuple[Cell, ...]:
        """The last PCU of each lane."""
        return self.cells[self.split.stages - 1 :: self.split.stages]


class PlacedTensor(Struct, frozen=True):
    """PMUs of one tensor.

    Attributes:
        role: what it is.
        number: position of the connection in the design, of the kernel for weights and what the design adds.
        cells: in their order.
    """

    role: Role
    number: int
    cells: tuple[Cell, ...]


class Wires(Struct, frozen=True):
    """Wires between the PMUs of a tensor and the PCUs of a kernel; both are numbered within the configuration."""

    tensor: int
    kernel: int
    is_write: bool  # PCUs write to PMUs; else PMUs feed PCUs
    pairs: tuple[tuple[Cell, Cell], ...]  # PMU, PCU


class PlacedUnits(Struct, frozen=True):
    """All units of one configuration and the wires between them."""

    kernels: tuple[PlacedKernel, ...]
    tensors: tuple[PlacedTensor, ...]
    wires: tuple[Wires, ...]


class UnitGraph(Struct, frozen=True):
    """The graph of a design by positions.

    Attributes:
        order: kernels in topological order.
        ends: writer and reader of each connection.
        labels: how the reader of each connection spreads it.
    """

    order: tuple[int, ...]
    ends: tuple[tuple[int, int], ...]
    labels: tuple[LaneStage, ...]


def walk(grid: PmuGrid) -> Iterator[Cell]:
    """Yield every cell: along ``x``, row after row; or along diagonals of equal ``x + y`` from small to large ``x``."""
    match grid.placement:
        case Placement.DIAGONALWISE:
            for total in range(grid.x + grid.y - 1):
                for x in range(max(0, total - grid.y + 1), min(total, grid.x - 1) + 1):
                    yield Cell(x, total - x)
        case Placement.ROWWISE:
            yield from (Cell(x, y) for y in range(grid.y) for x in range(grid.x))
        case Placement.NONE:
            raise InternalError("placement: found a grid on which nothing is to be placed")
        case _:
            assert_never(grid.placement)


def place_units(grid: PmuGrid, graph: UnitGraph, units: Allocation) -> PlacedUnits:
    """Place the units of one configuration.

    Raises:
        UserError: the grid has fewer cells of a kind than there are units.
    """
    cells = list(walk(grid))
    pcus, pmus = ([cell for cell in cells if cell.is_pcu is is_pcu] for is_pcu in (True, False))
    for what, free, needed in (("PCUs", pcus, units.cores), ("PMUs", pmus, units.pmus)):
        if len(free) < needed:
            raise UserError(
                f"grid of {grid.x} x {grid.y}: found {len(free)} cells for {what} against {needed} that are used"
            )
    free_pcus, free_pmus = iter(pcus), iter(pmus)
    kernels: list[PlacedKernel] = []
    tensors: list[PlacedTensor] = []
    for kernel in graph.order:
        if kernel not in units.splits:
            continue
        held = [(Role.WEIGHTS, kernel, units.weights.get(kernel, 0)), (Role.ADDED, kernel, units.extras.get(kernel, 0))]
        held += [(Role.TENSOR, number, units.edges[number]) for number in _placed_with(kernel, graph, units)]
        for role, number, count in held:
            if count:
                tensors.append(PlacedTensor(role, number, tuple(islice(free_pmus, count))))
        split = units.splits[kernel]
        kernels.append(PlacedKernel(kernel, split, tuple(islice(free_pcus, split.cores))))
    return PlacedUnits(tuple(kernels), tuple(tensors), tuple(_wires(graph, kernels, tensors)))


def _placed_with(kernel: int, graph: UnitGraph, units: Allocation) -> list[int]:
    """Return the connections that are placed with a kernel: those that it reads, or writes for readers elsewhere."""
    touching = [(number, *graph.ends[number]) for number in sorted(units.edges)]
    reads = [number for number, _, reader in touching if reader == kernel]
    return reads + [number for number, writer, reader in touching if writer == kernel and reader not in units.splits]


def _wires(graph: UnitGraph, kernels: list[PlacedKernel], tensors: list[PlacedTensor]) -> Iterator[Wires]:
    place = {placed.kernel: number for number, placed in enumerate(kernels)}
    for number, tensor in enumerate(tensors):
        writer: int | None = None
        reader, label = place.get(tensor.number), LaneStage.LANE
        if tensor.role is Role.TENSOR:
            source, target = graph.ends[tensor.number]
            writer, reader, label = place.get(source), place.get(target), graph.labels[tensor.number]
        if writer is not None:
            yield Wires(number, writer, is_write=True, pairs=_pairs(tensor.cells, kernels[writer].outlets))
        if reader is not None:
            yield Wires(number, reader, is_write=False, pairs=_pairs(tensor.cells, kernels[reader].inlets(label)))


def _pairs(pmus: tuple[Cell, ...], pcus: tuple[Cell, ...]) -> tuple[tuple[Cell, Cell], ...]:
    count = max(len(pmus), len(pcus))
    return tuple((pmus[number * len(pmus) // count], pcus[number * len(pcus) // count]) for number in range(count))


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
    distances = dict(zip(Border, (cell.x, grid.x - 1 - cell.x, cell.y, grid.y - 1 - cell.y), strict=True))
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
    graph = UnitGraph(model.pmu.order(range(len(model.shares))), tuple(design.ends), model.pmu.labels)
    found = []
    for number, step in enumerate(figures.steps):
        if step.units is not None:
            placed = place_units(grid, graph, step.units)
            found.append(PlacedConfiguration(number, placed, router_links(model, decision, grid, placed)))
    return tuple(found)
