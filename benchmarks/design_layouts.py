"""What layouts by axes change of set-up files: ``python -m benchmarks.design_layouts`` prints the table of the manual.

Three times of a batch in right mode: *letters*, by the table of [ko24] and with fewest bytes, as it was; *whole*, by
axes and with fewest bytes, so that what others need whole is computed whole; *now*, by axes, whatever takes least time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.system import Collective
from dfcompile.dfmodel_backend.options import DesignOptions, ShardingObjective
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution, solve_design
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace

FILES = Path(__file__).parent.parent / "tests" / "data" / "dfmodel"
LETTERS = DesignOptions(
    objective=ShardingObjective.BYTES,
    compatibility=replace(RIGHT, layouts_by_letter=True, sharding_of_fewest_bytes=True),
)
WHOLE = DesignOptions(objective=ShardingObjective.BYTES)
NOW = DesignOptions()
MOST_NAMES = 4


@dataclass(frozen=True, slots=True)
class Row:
    """One file, solved three times; None where it has no solution."""

    name: str
    letters: DesignSolution | None
    whole: DesignSolution | None
    now: DesignSolution | None

    def cells(self) -> Iterator[str]:
        """Yield the cells of a row of a table in Markdown."""
        yield self.name
        solved = (self.letters, self.whole, self.now)
        for one in solved:
            yield "no solution" if one is None else f"{one.figures.batch_s:.6g}"
        for one in solved[1:]:
            yield _change(self.letters, one)
        yield _why(self.letters, self.now)


def _solved(path: Path, options: DesignOptions) -> DesignSolution | None:
    try:
        return solve_design(read_design(path), options)
    except InfeasibleError:
        return None


def _change(before: DesignSolution | None, after: DesignSolution | None) -> str:
    if before is None or after is None:
        return ""
    change = 100 * (after.figures.batch_ns / before.figures.batch_ns - 1)
    return "0" if abs(change) < 0.0005 else f"{change:+.2f}"  # shown with two digits


def _why(before: DesignSolution | None, after: DesignSolution | None) -> str:
    """Return which kernels are split otherwise, and what is exchanged that was not."""
    if before is None or after is None:
        return "it does not fit, whatever the layouts"
    names = {kernel.id: kernel.name for kernel in after.design.kernels}
    old, new = before.decision.sharding, after.decision.sharding
    moved = [f"{names[one]} {old[one]} → {new[one]}" for one in names if old[one] is not new[one]]
    exchanged = [name for name in _exchanged(after) if name not in _exchanged(before)]
    parts = [_some(moved), f"exchanged: {_some(exchanged)}" if exchanged else ""]
    return "; ".join(part for part in parts if part) or "no kernel is split in a way that matters"


def _exchanged(solution: DesignSolution) -> list[str]:
    design, decision = solution.design, solution.decision
    model = DesignModel(design, decision.sharding, decision.tiles, solution.options.compatibility)
    own = [(number, kind) for number, share in enumerate(model.shares) for kind, _ in share.exchange]
    own += [(edge.source, kind) for edge in model.edges for kind, _ in edge.exchange]
    kinds = [one for one in own if one[1] is not Collective.ALL_REDUCE_PERIODIC]
    return list(dict.fromkeys(f"{kind.lower().replace('_', '-')} of {design.kernels[n].name}" for n, kind in kinds))


def _some(words: Sequence[str]) -> str:
    rest = f" and {len(words) - MOST_NAMES} more" if len(words) > MOST_NAMES else ""
    return ", ".join(words[:MOST_NAMES]) + rest


def main() -> None:
    """Print the table."""
    print("| case | letters s | whole s | now s | whole % | now % | what is split otherwise, what is exchanged |")
    print("|---|---|---|---|---|---|---|")
    for path in sorted(FILES.glob("*.txt")):
        solutions = [_solved(path, options) for options in (LETTERS, WHOLE, NOW)]
        print(f"| {' | '.join(Row(path.stem, *solutions).cells())} |")


if __name__ == "__main__":
    main()
