"""Explorations of models: the Pareto set, its gap and processor time, found anew and found again (docs/exploration.md).

python -m benchmarks.exploration [MODEL …]
"""

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from benchmarks.measurement import ROOT, save

PES, MEMORIES = "64,128,256,512,1024,2048", "256,1024,8192"
MODELS = (
    (ROOT / "examples" / "lenet" / "model.py", "16,128", "16,64"),
    (ROOT / "tests" / "models" / "encoder_layer.py", PES, MEMORIES),
    (ROOT / "benchmarks" / "models" / "encoder_layer.py", PES, MEMORIES),  # of "Attention Is All You Need"
)
PRODUCTS = "MatMul=mv,op,lmv,ip"  # of softmax there is one expansion


@dataclass(frozen=True, slots=True)
class Row:
    """One exploration; of a `.py` file reading takes most of the second run."""

    model: str
    points: int
    said: str
    cpu_s: float
    again_cpu_s: float


def main(files: list[str]) -> int:
    """Print a table of the models named, or of all, and save it."""
    wanted = [Path(name).resolve() for name in files]
    rows = [_row(*each) for each in MODELS if not wanted or each[0] in wanted]
    print("| model | points | CPU s | again | |\n|---|---|---|---|---|")
    for row in rows:
        print(f"| {row.model} | {row.points} | {row.cpu_s:.1f} | {row.again_cpu_s:.1f} | {row.said} |")
    print(save("exploration", rows))
    return 0


def _row(model: Path, pes: str, memories: str) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "dfcompile", "explore", str(model), "--pes", pes, "--on-chip-memory", memories,
                   "--expand", PRODUCTS, "--jobs", "1", "--cache", str(Path(folder, "kept.cache"))]  # fmt: skip
        first, cpu_s = _run(command)
        again, again_s = _run(command)
        rows, _ = _run([*command, "--format", "csv"])
    assert first == again
    said = next(line for line in first.split("\n") if "proved" in line)
    return Row(str(model.relative_to(ROOT)), rows.count("\n") - 1, said.strip(), cpu_s, again_s)


def _run(command: list[str]) -> tuple[str, float]:
    before = getrusage(RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    after = getrusage(RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
