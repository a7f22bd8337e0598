"""What each pass does to a model: operators, map scopes, tasks, makespan and memory traffic without and with it.

``python -m benchmarks.passes [MODEL …]``; by default LeNet, an encoder layer and ResNet-18, on 128 processing elements.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dace.sdfg.nodes import MapEntry

from benchmarks.measurement import ROOT, save
from dfcompile.frontend import OperatorNode, ReadOptions, read_model
from dfcompile.lowering import (
    apply_passes,
    lower_to_canonical,
    lower_to_maps,
    registered_expansions,
    registered_passes,
)

MODELS = ("examples/lenet/model.py", "benchmarks/models/encoder_layer.py", "benchmarks/models/resnet_18.py")
PES = 128


@dataclass(frozen=True, slots=True)
class Effect:
    """Figures of a model under a pass; under none, the name is empty."""

    model: str
    passed: str
    operators: int  # of level 1
    scopes: int  # of level 2, initialisations among them
    tasks: int
    makespan_cycles: int
    io_bytes: int


def main(models: Sequence[str]) -> None:
    """Print a table and save it."""
    effects = []
    for model in models or MODELS:
        for name in ("", *sorted(registered_passes().by_name)):
            effects.append(measured(Path(model), name))
            one = effects[-1]
            print(f"| {Path(model).stem if not name else ''} | {name or 'none'} | {one.operators:,} | {one.scopes:,} "
                  f"| {one.tasks:,} | {one.makespan_cycles:,} | {one.io_bytes:,} |", flush=True)  # fmt: skip
    print(f"written to {save('passes', effects, {'pes': PES}).relative_to(ROOT)}")


def measured(model: Path, name: str) -> Effect:
    """Return the figures of a model under one pass, or none."""
    command = [
        sys.executable,
        "-m",
        "dfcompile",
        str(model),
        "--pes",
        str(PES),
        "--expand",
        "published",
        "--format",
        "json",
    ]
    done = subprocess.run([*command, *(["--passes", name] if name else [])], check=True, capture_output=True, text=True)
    schedule = json.loads(done.stdout)["results"][0]["schedule"]
    table = registered_expansions()
    passes = [registered_passes().by_name[name]] if name else []
    library = apply_passes(lower_to_canonical(read_model(model, ReadOptions()).program, table), passes)
    maps = apply_passes(lower_to_maps(library, table), passes)
    return Effect(
        str(model),
        name,
        sum(isinstance(node, OperatorNode) for node in library.sdfg.start_state.nodes()),
        sum(isinstance(node, MapEntry) for node in maps.sdfg.start_state.nodes()),
        schedule["tasks"],
        schedule["makespan_cycles"],
        schedule["io_bytes"],
    )


if __name__ == "__main__":
    main(sys.argv[1:])
