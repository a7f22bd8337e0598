"""Mappings of models by the default choice of expansions, beside what no known algorithm beats (docs/mapping.md).

python -m benchmarks.mappings [MODEL …] [--pes N,N] [--expansions]

With ``--expansions``: every expansion of products and convolutions instead.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import dfcompile as df
from benchmarks.measurement import ROOT, save
from dfcompile.report.figures import Result

PES = (16, 128, 1024, 4096)
PUSCH = ROOT / "examples" / "pusch_mimo" / "mimo.py"


@dataclass(frozen=True, slots=True)
class Model:
    """A model that is mapped.

    Attributes:
        name: in the table.
        path: of its file.
        dims: sizes that it leaves open.
        before_us: time in microseconds of the default choice before it looked at memory, by PEs.
        rules: expansions that are compared with one another; none: it is left out there.
    """

    name: str
    path: Path
    dims: tuple[str, ...] = ()
    before_us: Mapping[int, float] = field(default_factory=dict)
    rules: tuple[str, ...] = ()


def _shipped(name: str) -> Path:
    return ROOT / "benchmarks" / "models" / f"{name}.py"


def _pusch(subcarriers: int) -> tuple[str, ...]:
    return f"N={subcarriers}", "R=64", "L=8"


PRODUCTS = "MatMul=mv,op,lmv,ip"
MODELS = (
    Model("lenet", ROOT / "examples" / "lenet" / "model.py", rules=(PRODUCTS, "Conv=im2col,direct")),
    Model("resnet_18", _shipped("resnet_18"), before_us={128: 19_500, 2048: 7_150}, rules=("Conv=im2col,direct",)),
    Model("resnet_50", _shipped("resnet_50")),
    Model("mobilenet_v2", _shipped("mobilenet_v2")),
    Model("vit_b_16", _shipped("vit_b_16")),
    Model("encoder_layer", ROOT / "tests" / "models" / "encoder_layer.py", rules=(PRODUCTS,)),
    Model("decode_layer", _shipped("decode_layer")),
    Model("gpt2_block", _shipped("gpt2_block"), rules=(PRODUCTS,)),
    Model("lstm_64", _shipped("lstm_64")),
    Model("diffusion_block", _shipped("diffusion_block")),
    Model("pusch_36", PUSCH, _pusch(36), before_us={1024: 1_040}),
    Model("pusch_3276", PUSCH, _pusch(3276)),
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
    compute_us: float  # terms of the ideal
    memory_us: float
    chain_us: float
    bound_by: str  # the largest of them
    moved_mb: float  # DRAM traffic
    least_mb: float  # that every expansion moves
    most: str  # of the parts of the time the largest
    before_us: float | None

    @property
    def ratio(self) -> float:
        """The time in units of the largest of the three terms."""
        return self.time_us / max(self.compute_us, self.memory_us, self.chain_us)


def main(words: Sequence[str]) -> int:
    """Print a table of the models named, or of all, and save it."""
    options = _options(words)
    print(_EXPANSIONS if options.expansions else _CHOICES)
    rows = []
    for model in MODELS:
        if (options.models and model.name not in options.models) or (options.expansions and not model.rules):
            continue
        for row in _rows(model, options.pes, model.rules if options.expansions else ()):
            rows.append(row)
            print(_compared(row) if options.expansions else _chosen(row), flush=True)
    if rows:
        worst = max(rows, key=lambda row: row.ratio)
        print(f"\ntime / largest term: median {median(row.ratio for row in rows):.3g}, worst {worst.ratio:.3g} "
              f"({worst.model} on {worst.pes} PEs)")  # fmt: skip
    print(save("mappings", rows))
    return 0


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks.mappings")
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(model.name for model in MODELS))
    parser.add_argument("--pes", type=lambda text: tuple(map(int, text.split(","))), default=())
    parser.add_argument("--expansions", action="store_true", help="compare expansions instead of choosing them")
    options = parser.parse_args(words)
    for name in set(options.models) - {model.name for model in MODELS}:
        parser.error(f"{name!r}: unknown")
    return options


_EXPANSIONS = "| model | expansions | PEs | time µs | bound µs | ideal µs | most of it |\n|---|---|---|---|---|---|---|"
_CHOICES = (
    "| model | PEs | time µs | compute µs | memory µs | chain µs | time / largest | which | DRAM MB | least MB | "
    "before µs |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def _compared(row: Row) -> str:
    figures = " | ".join(f"{value:,.4g}" for value in (row.time_us, row.bound_us, row.ideal_us))
    return f"| {row.model} | {row.expansions} | {row.pes} | {figures} | {row.most} |"


def _chosen(row: Row) -> str:
    times = " | ".join(f"{value:,.4g}" for value in (row.time_us, row.compute_us, row.memory_us, row.chain_us))
    moved = f"{row.moved_mb:,.4g} | {row.least_mb:,.4g}"
    before = "" if row.before_us is None else f"{row.before_us:,.4g}"
    return f"| {row.model} | {row.pes} | {times} | {row.ratio:.3g} | {row.bound_by} | {moved} | {before} |"


def _rows(model: Model, pes: tuple[int, ...], rules: tuple[str, ...]) -> Iterator[Row]:
    """Yield the mappings of a model; by the default choice on the PEs with a figure of before as well."""
    known = () if rules else model.before_us
    for count in pes or sorted({*PES, *known}):
        options = {"expand": rules} if rules else {}
        for result in df.compile(model.path, pes=count, dims=model.dims, **options).report.results:
            yield _row(model, result, {} if rules else model.before_us)


def _row(model: Model, result: Result, before_us: Mapping[int, float]) -> Row:
    mapping, traffic = result.mapping, result.traffic
    assert mapping is not None
    assert traffic is not None
    parts = {
        "work": mapping.parts.work_s,
        "PEs without task": mapping.parts.idle_elements_s,
        "phases at buffers": mapping.parts.waiting_s,
        "slower streams": mapping.parts.throttled_s,
        "whole blocks": mapping.parts.whole_blocks_s,
        "memory": mapping.parts.memory_s,
    }
    most = max(parts, key=lambda name: parts[name])
    return Row(
        model.name,
        " ".join(f"{key}={name}" for key, name in result.expansions.items() if key in ("MatMul", "Conv")),
        result.pes,
        mapping.time_s * 1e6,
        mapping.bound_time_s * 1e6,
        mapping.ideal_time_s * 1e6,
        (mapping.ideal.compute_s or 0.0) * 1e6,
        mapping.ideal.memory_s * 1e6,
        (mapping.ideal.chain_s or 0.0) * 1e6,
        mapping.ideal.bound_by,
        traffic.moved_bytes / 1e6,
        traffic.proved_bytes / 1e6,
        f"{most}, {100 * parts[most] / mapping.time_s:.0f} %",
        before_us.get(result.pes),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
