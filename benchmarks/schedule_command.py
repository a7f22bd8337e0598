"""CPU seconds and peak memory of whole ``dfcompile schedule`` commands against the size of the graph.

``python -m benchmarks.schedule_command [--largest TASKS] [--form text|json]``,
with ``--families`` and ``--effort`` to choose from:
FFT, Gaussian elimination, Cholesky and chains of about 1,000 to 1,000,000 tasks with random volumes (seed 1) on 128
processing elements, generated in the form given; one run of each. The default effort is measured up to 100,000.
"""

import argparse
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from benchmarks.measurement import ROOT, Measurement, measure, save

PES = 128
SIZES = {
    "fft": (128, 1024, 8192, 65_536),
    "gaussian": (45, 141, 447, 1414),
    "cholesky": (17, 38, 83, 180),
    "chain": (1000, 10_000, 100_000, 1_000_000),
}
ABOUT_TASKS = (1_000, 10_000, 100_000, 1_000_000)
LIMITS_S = {
    "quick": {1_000: 5.0, 10_000: 5.0, 100_000: 4.0, 1_000_000: 35.0},
    "default": {1_000: 5.0, 10_000: 5.0, 100_000: 30.0},
}
MEMORY_LIMIT_MB = 1000.0
SUFFIXES = {"text": ".dag", "json": ".json"}


def measured(folder: Path, family: str, place: int, effort: str, form: str) -> Measurement:
    """Generate a graph if it is not there, and schedule it."""
    command = str(Path(sysconfig.get_path("scripts")) / "dfcompile")
    about, file = ABOUT_TASKS[place], folder / f"{family}-{place}{SUFFIXES[form]}"
    if not file.exists():
        words = [command, "generate", family, "--size", str(SIZES[family][place]), "--seed", "1", "-o", str(file)]
        subprocess.run(words, check=True)
    words = [command, "schedule", str(file), "--pes", str(PES), "--effort", effort]
    return measure(f"{family} {about} {effort}", words, LIMITS_S[effort][about], count=1)


def row(found: Measurement, about: int) -> str:
    """Return a line of a Markdown table."""
    family, _, effort = found.name.split()
    seconds = f"{found.cpu_s:.1f}" if found.is_within_limit else f"**{found.cpu_s:.1f}**"
    cells = (family, f"{about:,}", effort, seconds, f"{found.cpu_s_limit:g}", f"{found.peak_memory_mb:,.0f}")
    return f"| {' | '.join(cells)} |"


def main(words: list[str]) -> int:
    """Measure, print, save; 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=100_000, help="about so many tasks at most")
    parser.add_argument("--form", choices=list(SUFFIXES), default="text", help="of the files")
    parser.add_argument("--families", default=",".join(SIZES), help="names with commas between")
    parser.add_argument("--effort", default=",".join(LIMITS_S), help="names with commas between")
    options = parser.parse_args(words)
    print("| graph | tasks | effort | CPU s | limit | peak MB |\n|---|---|---|---|---|---|", flush=True)
    found: list[Measurement] = []
    with tempfile.TemporaryDirectory() as folder:
        for family in options.families.split(","):
            for place, about in enumerate(ABOUT_TASKS):
                for effort in options.effort.split(","):
                    if about <= options.largest and about in LIMITS_S[effort]:
                        found.append(measured(Path(folder), family, place, effort, options.form))
                        print(row(found[-1], about), flush=True)
    print(f"written to {save('schedule_command', found, {'pes': PES, 'form': options.form}).relative_to(ROOT)}")
    kept = all(one.is_within_limit and one.peak_memory_mb <= MEMORY_LIMIT_MB for one in found)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
