"""Measurements of Tenstorrent's cards, Eyeriss, AI engines and A100: a bound each, and how far the roofline is off.

Facts and their sources: `chips.csv` has what Tenstorrent publishes of its cards (Polaris, `data/metal/inf/15oct25`, and
`config/tt_wh.yaml`, `config/tt_bh.yaml` for what a card has; Apache-2.0), two rows of Eyeriss (abstracts of ISSCC
2016, 14.5, and of JSSC 52.1, 2017), and one of AI engines, untraced (Stream, `docs/source/aie_calibration.md`: three
products of 256 rows, 512 and 2,048 columns on 32 engines). Those of A100 are `benchmarks.llm_validation`'s.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

import dfcompile as df
from benchmarks import llm_validation
from benchmarks.measurement import ROOT
from dfcompile.language_models.configuration.reading import read_model
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.machines.device import Device, LinkLevel
from dfcompile.language_models.parallel.degrees import Degrees
from dfcompile.language_models.parallel.deployment import Case, Deployments
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import StepChoices
from dfcompile.language_models.times.step_time import roofline

ROWS = Path(__file__).parent / "chips.csv"
_LINKS = (LinkLevel("sw", 32, 1e15),)  # of a bound: exchanges take no time


def _card(name: str, macs_per_s: float, bytes_per_s: float) -> Device:
    return Device(name, {"fp8": macs_per_s, "bf16": macs_per_s / 2}, bytes_per_s, links=_LINKS)


# Multiply-accumulates per second in blocks of 8 bits, and bytes per second.
CARDS: Mapping[str, Device] = {
    "n150": _card("n150", 74e12, 288e9),
    "p100": _card("p100", 120 * 2048 * 1.35e9, 448e9),
    "p150": _card("p150", 120 * 2048 * 1.35e9, 512e9),
}
# 168 multiply-adders at 250 MHz at most, and 32 engines of 512 of 8 bits, which 50 TOPS are, at the 1.25 GHz of the
# measurement; multiply-accumulates of the convolutions of one image, and of three products.
ARRAYS: Mapping[str, float] = {"eyeriss": 168 * 250e6, "strix": 32 * 512 * 1.25e9}
ARRAY_MACS: Mapping[str, float] = {
    "alexnet 227x227": 666e6,
    "vgg-16 224x224": 15.3e9,
    "swiglu 256x512x2048": 3 * 256 * 512 * 2048,
}
NOT_MODELLED = {
    "images": "traffic, which may stay on the chip; how full its arrays are; the host",
    "decode": "caches and lengths, which are not stated; exchanges between cards; launches; the host",
    "array": "how full the array is; transfers; zeros that are skipped",
    "A100": "exchanges, in the bound; launches; what a server adds",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A measured row; ``measured`` is per second."""

    model: str
    kind: str
    chip: str
    chips: int
    batch: int
    measured: float
    unit: str


@dataclass(frozen=True, slots=True)
class Bounded:
    """What was measured and what is bounded, in milliseconds of a step, and which part was not modelled."""

    name: str
    bound_ms: float
    measured_ms: float
    left_out: str

    @property
    def error(self) -> float:
        """Of the bound taken as an estimate, relative."""
        return self.bound_ms / self.measured_ms - 1


def bounded() -> list[Bounded]:
    """Return every row with its bound."""
    rows = [msgspec.convert(one, Row, strict=False) for one in csv.DictReader(ROWS.read_text().splitlines())]
    apart = (
        Bounded(one.case, one.roofline_ms, one.measured_ms, NOT_MODELLED["A100"])
        for one in llm_validation.comparisons()
    )
    return [*map(chip_bound, rows), *apart]


def chip_bound(row: Row) -> Bounded:
    """Return a row of a chip with its bound."""
    name = f"{row.model}, {row.chips} x {row.chip}, batch {row.batch}"
    each = 1 if row.kind == "decode" else row.batch
    measured = 1e3 * each / row.measured
    match row.kind:
        case "images":
            report = df.bounds(ROOT / "benchmarks" / "models" / f"{row.model}.py", buffers="64MB").report
            macs = sum(operator.operations for operator in report.operators) / 2
            seconds = macs * row.batch / row.chips / CARDS[row.chip].rate("fp8")
        case "array":
            seconds = ARRAY_MACS[row.model] * row.batch / ARRAYS[row.chip]
        case _:
            batch = Batch("decode", (Sequences(1, 1, row.batch),))  # the shortest: lengths are not stated
            model, eight = read_model(row.model), uniform(FORMATS["fp8"])
            case = Case(model, batch, CARDS[row.chip], eight, StepChoices(), roofline)
            seconds = Deployments(case, row.chips).deployed(Degrees(row.chips)).kernels.overlap_s
    return Bounded(name, seconds * 1e3, measured, NOT_MODELLED[row.kind])


def page() -> Iterator[str]:
    """Yield the part of the page."""
    found = bounded()
    yield f"Bound <= measured in {sum(one.bound_ms <= one.measured_ms for one in found)} of {len(found)} rows."
    yield ""
    yield "| measured | ms | bound, ms | bound against measured | not modelled |"
    yield "|---|---:|---:|---:|---|"
    for one in found:
        yield f"| {one.name} | {one.measured_ms:.2f} | {one.bound_ms:.2f} | {100 * one.error:+.0f} % | {one.left_out} |"
