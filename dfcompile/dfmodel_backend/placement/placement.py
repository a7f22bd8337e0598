"""Places the units of each configuration on the chip's checkerboard: a cell for each PCU (core) and PMU [ko24].

Cells with odd ``x + y`` hold PCUs, the others PMUs. A walk goes through all cells, by rows or by diagonals; each unit
takes the next free cell of its kind. Kernels come in topological order, each with the PMUs of its weights, of what the
design adds, of the tensors that it reads, its PCUs, and the PMUs of what it hands to other configurations.

Rows of a tensor go to lanes, columns to stages. The PCUs of a kernel pass data on to each other, so that wires end at
the rim of its lanes by stages: rows enter at the first PCU of each lane, columns at each PCU of the first lane, and
results leave from the last PCU of each lane. Both ends of a wire go through their units in order, in blocks as even as
possible, until every unit has one.
"""

from collections.abc import Iterator
from enum import StrEnum, unique
from itertools import islice
from typing import NamedTuple, assert_never

from msgspec import Struct

from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit
from dfcompile.dfmodel_backend.intra_chip.memory_units.cycles import Allocation
from dfcompile.dfmodel_backend.machine.machine import LaneStage, Placement, PmuGrid
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
        match label:
            case LaneStage.LANE:
                return self.cells[::stages]
            case LaneStage.STAGE:
                return self.cells[:stages]
        assert_never(label)

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
            for y in range(grid.y):
                for x in range(grid.x):
                    yield Cell(x, y)
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
    return reads + [
        number for number, writer, reader in touching if writer == kernel and reader not in units.splits
    ]  # fmt: skip


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
    return tuple(
        (pmus[number * len(pmus) // count], pcus[number * len(pcus) // count]) for number in range(count)
    )  # fmt: skip
