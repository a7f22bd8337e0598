"""``python -m tests.rtl.values MODEL``: simulates the circuits of a model on random inputs, and compares values."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from dfcompile.cli.emissions import with_values
from dfcompile.driver import explore
from dfcompile.frontend import Model, ReadOptions, read_model
from dfcompile.host.outputs import write_folder
from dfcompile.options import Options, read_options
from dfcompile.records import replace
from dfcompile.rtl.comparison import compared
from dfcompile.rtl.folder import rtl_files, scheduled_circuit
from dfcompile.rtl.simulation import SIMULATORS, Fifos


def with_weights(path: Path, reading: ReadOptions) -> Model:
    """Read a model with the values of its weights."""
    return read_model(path, replace(reading, reads_weights=True))


def compared_model(file: Path, inputs: int, simulator: str, **options: object) -> list[str]:
    """Return what a simulation of the circuits of a model's schedules says, on so many random inputs."""
    exploration = explore(read_options(Options, {"model": file, **options}), read=with_weights)
    model = exploration.model
    feeds = [replace(model, examples=()).example_feeds(seed) for seed in range(inputs)]
    circuits = []
    for point in exploration.points:
        circuit = scheduled_circuit(f"{file.stem}_{point.all_pes}", *point.shown_schedule, ends=True)
        circuits.append(with_values(circuit, model, point, feeds))
    with TemporaryDirectory() as parent:
        folder = Path(parent) / "design"
        write_folder(rtl_files(circuits), folder)
        return list(compared(folder, simulator, Fifos()))


def main(words: Sequence[str]) -> int:
    """Print a line for each circuit; a difference is an error."""
    parser = argparse.ArgumentParser(prog="python -m tests.rtl.values", description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--pes", default="16")
    parser.add_argument("--expand", default="quick")
    parser.add_argument("--system", default="canonical")
    parser.add_argument("--inputs", type=int, default=1)
    parser.add_argument("--simulator", choices=("auto", *SIMULATORS), default="auto")
    asked = parser.parse_args(words)
    options = {"pes": asked.pes, "expand": asked.expand, "system": asked.system}
    print(*compared_model(asked.model, asked.inputs, asked.simulator, **options), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
