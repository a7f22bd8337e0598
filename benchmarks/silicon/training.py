"""Measured training steps of Megatron-LM on A100: a bound each, and how far the calibrated estimate is from it.

Facts: the iteration times of [korthikanti22], table 5, and its activations per chip, as Calculon repeats them
(`calculon/llm/validation.py`, Apache-2.0); of [narayanan21] the throughput of 1T parameters on 3,072 chips,
502 PFLOP/s, by its own count of operations, on the split that DFModel's case `llm_1T_megatron_25600` has (BSD
2-Clause). Sequences of 2,048 tokens, a vocabulary of 51,200, dropout, scores in memory, all pairs of queries and keys.
Chips have 200 Gbit/s each between machines.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

import msgspec

from dfcompile.language_models.configuration.reading import Configuration, model_of
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.machines.device import LinkLevel
from dfcompile.language_models.machines.finding import find_device
from dfcompile.language_models.parallel.degrees import Degrees
from dfcompile.language_models.parallel.deployment import Case
from dfcompile.language_models.parallel.training import Trainings, TrainingStep
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import StepChoices
from dfcompile.language_models.steps.training_kernels import Recompute, TrainingChoices
from dfcompile.language_models.times.calibrated import find_calibration
from dfcompile.language_models.times.step_time import roofline
from dfcompile.records import replace

ROWS = Path(__file__).parent / "training.csv"
CALIBRATION = "a100"
TOKENS = 2048
BETWEEN = LinkLevel("sw", 512, 25e9)


class Row(msgspec.Struct, frozen=True):
    """A measured step; activations of a chip in GiB where they are published."""

    name: str
    heads: int
    hidden: int
    layers: int
    tensor: int
    pipeline: int
    data: int
    interleave: int
    batch: int
    micro_batch: int
    recompute: Recompute
    splits_norms: bool
    seconds: float
    activation_gib: float | str
    source: str


def rows() -> list[Row]:
    """Return the measured steps."""
    return [msgspec.convert(one, Row, strict=False) for one in csv.DictReader(ROWS.read_text().splitlines())]


def estimated(row: Row, *, is_calibrated: bool = True) -> TrainingStep:
    """Return the step of a row, by the calibration or by the roofline, which is a bound."""
    sizes = {"n_embd": row.hidden, "n_layer": row.layers, "n_head": row.heads, "n_positions": TOKENS}
    model = model_of(Configuration(row.name, row.name, {"model_type": "gpt2", "vocab_size": 51200, **sizes}))
    device, _ = find_device("a100-sxm", ("bf16",))
    device = replace(device, links=(*device.links, BETWEEN))
    training = TrainingChoices(row.recompute, dropout=True, splits_norms=row.splits_norms, interleave=row.interleave)
    fitted = find_calibration(CALIBRATION)
    how = (fitted.seconds, fitted.all_reduce) if is_calibrated else (roofline, None)
    batch = Batch("train", (Sequences(0, TOKENS, row.batch, head_rows=TOKENS),))
    case = Case(model, batch, device, uniform(FORMATS["bf16"]), StepChoices(causal=False, flash=False), *how)
    parts = row.batch // row.data // row.micro_batch
    degrees = Degrees(row.tensor, data=row.data, pipeline=row.pipeline, micro_batches=parts)
    return Trainings(case, training, degrees.chips).step(degrees)


def page() -> Iterator[str]:
    """Yield the lines of the table."""
    found = [(row, estimated(row), estimated(row, is_calibrated=False)) for row in rows()]
    below = sum(bound.exec_s <= row.seconds for row, _, bound in found)
    errors = [one.exec_s / row.seconds - 1 for row, one, _ in found]
    yield f"Bound <= measured in {below} of {len(found)} rows. Mean absolute error {_percent(errors)} %."
    yield ""
    times, held = "measured, s | bound, s | estimate, s | error", "activations, GiB | published, GiB"
    yield f"| model | chips | degrees | again | {times} | {held} |"
    yield "|---|---:|---|---|---:|---:|---:|---:|---:|---:|"
    for (row, one, bound), error in zip(found, errors, strict=True):
        held = f"{one.held.activations / 2**30:.2f} | {row.activation_gib}"
        times = f"{row.seconds:.2f} | {bound.exec_s:.2f} | {one.exec_s:.2f} | {100 * error:+.1f} %"
        yield f"| {row.name} | {one.degrees.chips:,} | {one.degrees.name} | {row.recompute.value} | {times} | {held} |"


def _percent(errors: list[float]) -> str:
    return f"{100 * sum(map(abs, errors)) / len(errors):.1f}"
