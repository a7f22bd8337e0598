"""The audit of placed configurations: the numbers of cells, and what they are counted as."""

from collections.abc import Iterable, Sequence

from dfcompile.audit.comparing import expect, expect_text
from dfcompile.dfmodel_backend import DesignSolution, PlacedConfiguration
from dfcompile.errors import VerificationError
from dfcompile.report.design.figures import PlacementSummary

Cells = Iterable[tuple[int, int]]  # x and y of each


def audit_placements(
    where: str,
    summaries: Sequence[PlacementSummary],
    solution: DesignSolution,
    placed: Sequence[PlacedConfiguration],
) -> None:
    """Number the cells of placed units anew; the checker has accepted where they are.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    expect(f"{where}: their number", len(summaries), len(placed))
    for number, (summary, one) in enumerate(zip(summaries, placed, strict=True)):
        _audit_placement(f"{where}[{number}]", summary, one, solution)


def _audit_placement(
    where: str, summary: PlacementSummary, placed: PlacedConfiguration, solution: DesignSolution
) -> None:
    grid, units = solution.design.machine.pmu, placed.units
    if grid is None:
        raise VerificationError(f"{where}: found a placement against a chip without a grid")

    def numbers(cells: Cells) -> tuple[int, ...]:
        return tuple(x + grid.x * y for x, y in cells)

    expect(f"{where}.configuration", summary.configuration, placed.configuration)
    expect(f"{where}.columns", summary.columns, grid.x)
    expect(f"{where}.rows", summary.rows, grid.y)
    expect(f"{where}.pcus", summary.pcus, sum(kernel.split.lanes * kernel.split.stages for kernel in units.kernels))
    expect(f"{where}.pmus", summary.pmus, len({cell for tensor in units.tensors for cell in tensor.cells}))
    names = [solution.design.kernels[kernel.kernel].name for kernel in units.kernels]
    found: list[tuple[object, ...]] = [(one.name, one.lanes, one.stages, one.cells) for one in summary.kernels]
    expected: list[tuple[object, ...]] = [
        (name, kernel.split.lanes, kernel.split.stages, numbers(kernel.cells))
        for name, kernel in zip(names, units.kernels, strict=True)
    ]
    _compare(f"{where}.kernels", found, expected)
    _compare(
        f"{where}.tensors",
        [(one.role, one.cells) for one in summary.tensors],
        [(tensor.role.value, numbers(tensor.cells)) for tensor in units.tensors],
    )
    _compare(
        f"{where}.wires",
        [(one.tensor, one.kernel, one.direction, one.pmu_cells, one.pcu_cells) for one in summary.wires],
        [
            (
                wires.tensor,
                wires.kernel,
                "out" if wires.is_write else "in",
                numbers(pmu for pmu, _ in wires.pairs),
                numbers(pcu for _, pcu in wires.pairs),
            )
            for wires in units.wires
        ],
    )
    _compare(
        f"{where}.links",
        [(one.tensor, one.kernel, one.direction, one.dimension, one.border, one.cells) for one in summary.links],
        [
            (
                link.tensor,
                link.kernel,
                "in" if link.is_incoming else "out",
                link.dimension,
                link.border.value,
                numbers(link.cells),
            )
            for link in placed.links
        ],
    )


def _compare(where: str, found: Sequence[tuple[object, ...]], expected: Sequence[tuple[object, ...]]) -> None:
    expect(f"{where}: their number", len(found), len(expected))
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        expect_text(f"{where}[{number}]", one, other)
