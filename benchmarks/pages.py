"""Pages of large reports: size, first paint, the slowest interaction, and whether anything is complained of or fetched.

python -m benchmarks.pages [NAME …]

Pages are written to ``build/pages`` by the commands below, which take some ten minutes, and opened in Chromium.
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.measurement import ROOT, save
from tests.website.browser import browser
from tests.website.page_checks import FIRST_PAINT_MS, INTERACTION_MS, MOST_BYTES, tried

FOLDER = ROOT / "build" / "pages"
PES = ",".join(map(str, range(1, 111)))
MEMORIES = ",".join(f"{8 * step}B" for step in range(1, 251))
CHOLESKY = FOLDER / "cholesky-83.dag"
COMMANDS: Final = (
    ("lenet", (ROOT / "examples/lenet/model.py", "--pes", "1,4,16,64,256,1024", "--expand", "MatMul=mv,ip,op,lmv")),
    ("resnet-50", (ROOT / "benchmarks/models/resnet_50.py", "--pes", "2048", "--expand", "published")),
    ("exploration", ("explore", ROOT / "benchmarks/linear_chain.py", "--pes", PES, "--on-chip-memory", MEMORIES,
                     "--expand", "MatMul=ip", "--tries", "100000", "--jobs", "1")),
    ("cholesky-83", ("schedule", CHOLESKY, "--pes", "128")),
    ("gpt-3-1t", (ROOT / "tests/data/dfmodel/readme_gpt3_1t_sn30.txt",)),
    ("llm", ("llm", "--prefill", "1024", "--decode", "4096x8", "--map")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A page; times in milliseconds."""

    page: str
    points: int  # results, or points of a Pareto set; 0 where there are none
    megabytes: float
    first_paint_ms: float
    slowest: str
    slowest_ms: float
    complaints: int

    @property
    def is_within_limits(self) -> bool:
        """Whether it is as small and as quick as pages have to be."""
        return (
            self.megabytes <= MOST_BYTES / 1e6
            and self.first_paint_ms <= FIRST_PAINT_MS
            and self.slowest_ms <= INTERACTION_MS
            and not self.complaints
        )


def main(names: list[str]) -> int:
    """Write the pages, open them, print a table and save it; 1 if a limit is broken."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = []
    with browser() as running:
        for name, words in COMMANDS:
            if names and name not in names:
                continue
            page = FOLDER / f"{name}.html"
            _write(page, words)
            found = tried(running, page)
            slowest, took = found.slowest
            points = running.evaluate("(dfcompile.report.front || dfcompile.report.results || []).length")
            assert isinstance(points, int)
            rows.append(
                Row(name, points, found.size_bytes / 1e6, found.first_paint_ms, slowest, took, len(found.complaints))
            )
            for complaint in found.complaints:
                print(f"{name}: {complaint}", file=sys.stderr)
    print("| page | points | MB | first paint, ms | slowest interaction, ms | complaints | |")
    print("|---|---:|---:|---:|---|---:|---|")
    for row in rows:
        print(
            f"| {row.page} | {row.points:,} | {row.megabytes:.2f} | {row.first_paint_ms:.0f} | "
            f"{row.slowest_ms:.0f} ({row.slowest}) | {row.complaints} | "
            f"{'' if row.is_within_limits else 'OVER THE LIMIT'} |"
        )
    print(f"written to {save('pages', rows).relative_to(ROOT)}")
    return 0 if all(row.is_within_limits for row in rows) else 1


def _write(page: Path, words: tuple[str | Path, ...]) -> None:
    """Write a page, unless it is there: what is measured is the page."""
    if page.exists():
        return
    dfcompile = [sys.executable, "-m", "dfcompile"]
    if CHOLESKY in words and not CHOLESKY.exists():
        subprocess.run([*dfcompile, "generate", "cholesky", "--size", "83", "-o", CHOLESKY], check=True)
    subprocess.run([*dfcompile, *map(str, words), "--html", str(page)], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
