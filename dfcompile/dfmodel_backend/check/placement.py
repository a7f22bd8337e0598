"""Checks placed units from the definitions: every unit has one cell of its kind, and is wired to where it belongs."""

from collections import Counter

from dfcompile.dfmodel_backend.evaluate.designs import DesignFigures
from dfcompile.dfmodel_backend.intra_chip.memory_units import Allocation
from dfcompile.dfmodel_backend.machine.system import PmuGrid
from dfcompile.dfmodel_backend.placement import PlacedConfiguration, PlacedUnits, Role
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.errors import VerificationError


def check_placements(design: Design, figures: DesignFigures, placed: tuple[PlacedConfiguration, ...]) -> None:
    """Check the placement of each configuration of a design.

    Raises:
        VerificationError: naming the configuration and the unit, found against expected.
    """
    grid = design.machine.pmu
    if not placed or grid is None:
        return
    expected = [number for number, step in enumerate(figures.steps) if step.units is not None]
    if [one.configuration for one in placed] != expected:
        raise VerificationError(f"placement: found other configurations than {expected}")
    position = {kernel.id: number for number, kernel in enumerate(design.kernels)}
    ends = tuple((position[edge.source], position[edge.target]) for edge in design.edges)
    for one in placed:
        units = figures.steps[one.configuration].units
        assert units is not None
        where = f"placement of configuration {one.configuration}"
        check_units_placed(grid, ends, units, one.units, where)
        _check_links(ends, one, where)


def check_units_placed(
    grid: PmuGrid, ends: tuple[tuple[int, int], ...], units: Allocation, placed: PlacedUnits, where: str
) -> None:
    """Check that all units of a configuration, and no others, have one cell each, and that wires join them all.

    Raises:
        VerificationError: as `check_placements`.
    """
    kernels = {kernel.kernel: (kernel.split, len(kernel.cells)) for kernel in placed.kernels}
    if kernels != {kernel: (split, split.lanes * split.stages) for kernel, split in units.splits.items()}:
        raise VerificationError(f"{where}: PCUs: found other kernels, splits or counts than the configuration's")
    found = {(tensor.role, tensor.number): len(tensor.cells) for tensor in placed.tensors}
    expected = {
        (role, number): count
        for role, counts in ((Role.TENSOR, units.edges), (Role.WEIGHTS, units.weights), (Role.ADDED, units.extras))
        for number, count in counts.items()
        if count
    }
    if found != expected or len(kernels) != len(placed.kernels) or len(found) != len(placed.tensors):
        raise VerificationError(f"{where}: PMUs: found other tensors or counts than the configuration's")
    cells = [(cell, True) for kernel in placed.kernels for cell in kernel.cells]
    cells += [(cell, False) for tensor in placed.tensors for cell in tensor.cells]
    for cell, is_pcu in cells:
        if not (0 <= cell.x < grid.x and 0 <= cell.y < grid.y) or (cell.x + cell.y) % 2 != is_pcu:
            raise VerificationError(
                f"{where}: found a {'PCU' if is_pcu else 'PMU'} at {cell.x}, {cell.y} against a cell of its kind"
            )
    for cell, count in Counter(cell for cell, _ in cells).items():
        if count > 1:
            raise VerificationError(f"{where}: found {count} units at {cell.x}, {cell.y} against 1")
    _check_wires(ends, placed, where)


def _check_wires(ends: tuple[tuple[int, int], ...], placed: PlacedUnits, where: str) -> None:
    inside = {kernel.kernel for kernel in placed.kernels}
    expected: Counter[tuple[int, int, bool]] = Counter()
    for number, tensor in enumerate(placed.tensors):
        writer, reader = ends[tensor.number] if tensor.role is Role.TENSOR else (-1, tensor.number)
        expected.update((number, end, is_write) for end, is_write in ((writer, True), (reader, False)) if end in inside)
    found = Counter((wires.tensor, placed.kernels[wires.kernel].kernel, wires.is_write) for wires in placed.wires)
    if found != expected:
        raise VerificationError(f"{where}: wires: found other tensors and kernels than those that touch")
    for wires in placed.wires:
        pmus, pcus = set(placed.tensors[wires.tensor].cells), set(placed.kernels[wires.kernel].cells)
        split = placed.kernels[wires.kernel].split
        wired = {pcu for _, pcu in wires.pairs}
        if {pmu for pmu, _ in wires.pairs} != pmus or not wired <= pcus:
            raise VerificationError(f"{where}: wires of tensor {wires.tensor}: found other units than all of its own")
        if len(wired) not in (split.lanes, split.stages):
            raise VerificationError(
                f"{where}: wires of tensor {wires.tensor}: found {len(wired)} PCUs against "
                f"{split.lanes} lanes or {split.stages} stages"
            )


def _check_links(ends: tuple[tuple[int, int], ...], placed: PlacedConfiguration, where: str) -> None:
    """Check that each tensor that crosses the border of the configuration has links for each of its PMUs."""
    inside = {kernel.kernel for kernel in placed.units.kernels}
    linked: dict[tuple[int, bool], list[tuple[int, int]]] = {}
    for link in placed.links:
        if link.tensor is not None:
            linked.setdefault((link.tensor, link.is_incoming), []).extend(link.cells)
    for number, tensor in enumerate(placed.units.tensors):
        if tensor.role is Role.ADDED:
            continue
        writer, reader = ends[tensor.number] if tensor.role is Role.TENSOR else (-1, tensor.number)
        if writer in inside and reader in inside:
            continue
        is_incoming = reader in inside
        if not set(tensor.cells) <= set(linked.get((number, is_incoming), [])):
            way = "in" if is_incoming else "out"
            raise VerificationError(f"{where}: tensor {number}: found PMUs without a link {way} against one for each")
