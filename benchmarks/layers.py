"""What more layers cost: CPU seconds of every stage, and the exponents with which they grow.

``python -m benchmarks.layers [--model 8b] [--layers 8,32] [--pes 128]`` writes decoders of the shapes of Llama 3.1 that
differ in their layers alone, compiles each in a process of its own, and prints a row for each stage. An exponent of 1
is a stage that costs twice as much for twice as many layers.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.decoder_shapes import SHAPES, write_decoder
from benchmarks.measurement import ROOT
from benchmarks.scheduler_phases import peak_memory_mb

WHOLE = "all"
LEAST_S = 0.1  # of the largest: exponents of less are noise


def main() -> None:
    """Measure, print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(SHAPES), default="8b")
    parser.add_argument("--layers", default="8,32", help="numbers of layers, ascending")
    parser.add_argument("--pes", default="128")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_stages_of(Path(options.one), options.pes)))
        return
    counts = [int(text) for text in options.layers.split(",")]
    rows = [_measured(options.model, count, options.pes) for count in counts]
    print("\n".join(_table(counts, rows)))


def _measured(model: str, layers: int, pes: str) -> dict[str, float]:
    """Return CPU seconds by stage, and peak memory in MB, of a model with so many layers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"decoder_{layers}.onnx"
        write_decoder(SHAPES[model], layers, path)
        command = [sys.executable, "-P", "-m", "benchmarks.layers", "--one", str(path), "--pes", pes]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _stages_of(path: Path, pes: str) -> dict[str, float]:
    from dfcompile.api.compile_model import compile_model  # counted as what comes before the first stage

    stages: dict[str, float] = {}

    @contextmanager
    def show(stage: str) -> Iterator[None]:
        begin = time.process_time()
        yield
        name = " ".join(word for word in stage.split() if not (set(word) & set("/0123456789")))
        stages[name] = stages.get(name, 0.0) + time.process_time() - begin

    compile_model(path, pes=pes, show=show)
    whole = time.process_time()
    return stages | {"the rest": whole - sum(stages.values()), WHOLE: whole, "MB": peak_memory_mb()}


def _table(counts: list[int], rows: list[dict[str, float]]) -> Iterator[str]:
    yield f"{'layers':40}" + "".join(f"{count:>9}" for count in counts) + "  exponent"
    for stage in rows[-1]:
        seconds = [row.get(stage, 0.0) for row in rows]
        growth = ""
        if len(rows) > 1 and seconds[0] > 0 and seconds[-1] >= LEAST_S:
            growth = f"{math.log(seconds[-1] / seconds[0]) / math.log(counts[-1] / counts[0]):.2f}"
        yield f"{stage:40}" + "".join(f"{one:>9.2f}" for one in seconds) + f"{growth:>10}"


if __name__ == "__main__":
    main()
