"""Fields of a DFModel file about memory units (PMUs), checked."""

from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.dfmodel_backend.machine.memory_unit_grid import Placement, PmuGrid
from dfcompile.errors import UserError, nearest


def pmu_grid_of(message: schema.DSE, where: str) -> PmuGrid | None:
    """Return the memory units of a design; None if it has none and SRAM is one.

    Raises:
        UserError: a field is missing or contradicts another.
    """
    chip, execution = message.system.accelerator, message.execution
    field = "system.accelerator."
    if not chip.pmu:
        return None
    if chip.pmu < 0:
        raise UserError(f"{where}: field '{field}pmu': found {chip.pmu} against a positive number, or 0 for none")
    if execution.compute_util:
        raise UserError(
            f"{where}: field 'execution.compute_util': found {execution.compute_util:g} against 0 where "
            f"{field}pmu is {chip.pmu} (lanes and stages decide how many PMUs a tensor takes; or set pmu to 0)"
        )
    if not chip.pmu_cap > 0:
        raise UserError(f"{where}: field '{field}pmu_cap': found {chip.pmu_cap:g} against a positive number of bytes")
    if execution.turn_off_p_and_r:
        return PmuGrid(chip.pmu, chip.pmu_cap, 0, 0, Placement.NONE)
    _check_board(chip, where)
    if chip.placement not in (Placement.ROWWISE, Placement.DIAGONALWISE):
        hint = nearest(chip.placement, [Placement.ROWWISE.value, Placement.DIAGONALWISE.value])
        raise UserError(
            f"{where}: field '{field}placement': found {chip.placement!r} against 'rowwise' or 'diagonalwise'{hint}"
        )
    return PmuGrid(chip.pmu, chip.pmu_cap, chip.x, chip.y, Placement(chip.placement))


def _check_board(chip: schema.Accelerator, where: str) -> None:
    """Check that a checkerboard has a cell for each unit: PCUs lie where x + y is odd, PMUs where it is even."""
    cells = chip.x * chip.y
    hint = "or execution.turn_off_p_and_r to place nothing"
    if chip.x < 1 or chip.y < 1 or cells != chip.core + chip.pmu:
        raise UserError(
            f"{where}: fields 'system.accelerator.x' and 'y': found {chip.x} x {chip.y} = {cells} cells against "
            f"{chip.core + chip.pmu} = {chip.core} core + {chip.pmu} pmu ({hint})"
        )
    odd = cells // 2
    if chip.core != odd:
        raise UserError(
            f"{where}: fields 'system.accelerator.core' and 'pmu': found {chip.core} and {chip.pmu} against {odd} and "
            f"{cells - odd}, the odd and even cells of a board of {chip.x} x {chip.y} ({hint})"
        )
