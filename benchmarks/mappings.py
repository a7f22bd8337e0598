"""Mappings of models under every expansion of products and convolutions: attained, bound, ideal (docs/mapping.md).

python -m benchmarks.mappings [MODEL …]
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dfcompile as df
from benchmarks.measurement import ROOT, save

PES = (16, 128, 1024)
MODELS = (
    (ROOT / "examples" / "lenet" / "model.py", ("MatMul=mv,op,lmv,ip", "Conv=im2col,direct")),
    (ROOT / "tests" / "models" / "encoder_layer.py", ("MatMul=mv,op,lmv,ip",)),
    (ROOT / "benchmarks" / "models" / "resnet_18.py", ("Conv=im2col,direct",)),
    (ROOT / "benchmarks" / "models" / "gpt2_block.py", ("MatMul=mv,op,lmv,ip",)),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One mapping; times in microseconds."""

    model: str
    expansions: str
    pes: int
    time_us: float
    bound_us: float
    ideal_us: float
    most: str  # of the parts of the time the largest


def main(files: list[str]) -> int:
    """Print a table of the models named, or of all, and save it."""
    wanted = {Path(name).stem if Path(name).stem != "model" else Path(name).parent.name for name in files}
    rows = [row for model, rules in MODELS if not wanted or _name(model) in wanted for row in _rows(model, rules)]
    print("| model | expansions | PEs | time µs | bound µs | ideal µs | most of it |\n|---|---|---|---|---|---|---|")
    for row in rows:
        figures = " | ".join(f"{value:,.4g}" for value in (row.time_us, row.bound_us, row.ideal_us))
        print(f"| {row.model} | {row.expansions} | {row.pes} | {figures} | {row.most} |")
    print(save("mappings", rows))
    return 0


def _name(model: Path) -> str:
    return model.parent.name if model.stem == "model" else model.stem


def _rows(model: Path, rules: tuple[str, ...]) -> Iterator[Row]:
    for result in df.compile(model, pes=PES, expand=rules).report.results:
        mapping = result.mapping
        assert mapping is not None
        parts = {
            "work": mapping.parts.work_s,
            "PEs without task": mapping.parts.idle_elements_s,
            "phases at buffers": mapping.parts.waiting_s,
            "slower streams": mapping.parts.throttled_s,
            "whole blocks": mapping.parts.whole_blocks_s,
            "memory": mapping.parts.memory_s,
        }
        most = max(parts, key=lambda name: parts[name])
        yield Row(
            _name(model),
            " ".join(f"{key}={name}" for key, name in result.expansions.items() if key in ("MatMul", "Conv")),
            result.pes,
            mapping.time_s * 1e6,
            mapping.bound_time_s * 1e6,
            mapping.ideal_time_s * 1e6,
            f"{most}, {100 * parts[most] / mapping.time_s:.0f} %",
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
