"""Canonical DAG files, generated and then mutated; judged by ``dfcompile schedule``."""

import io
from pathlib import Path

import numpy as np

from dfcompile.generators.catalogue import find_generator
from tests.fuzz.command_line import run_command
from tests.fuzz.draw import Draw
from tests.fuzz.kind import Case, ShowPhase
from tests.fuzz.outcome import Outcome
from tests.fuzz.text_mutations import mutated_text


def mutated_dag(draw: Draw) -> Case:
    name = draw.choice(["chain", "fft", "gaussian", "cholesky", "fork-join", "matmul", "convolution"])
    arguments = _arguments(name, draw)
    if name not in {"matmul", "convolution"}:
        arguments["volume"] = draw.choice([4, 16, 64])
        if draw.chance(0.8):
            arguments["seed"] = draw.integer(0, 99)
    form = draw.choice(["text", "text", "json", "npz"])
    written = find_generator(name).write(arguments, form)
    if isinstance(written, bytes):
        return Case(".npz", _mutated_archive(written, draw))
    return Case(".json" if form == "json" else ".dag", mutated_text(written, draw))


def _mutated_archive(data: bytes, draw: Draw) -> bytes:
    """Return an archive with some bytes changed, or cut off, or with an array changed and packed again."""
    if draw.chance(0.5):
        changed = bytearray(data)
        for _ in range(draw.integer(1, 4)):
            changed[draw.integer(0, len(changed) - 1)] = draw.integer(0, 255)
        return bytes(changed[: draw.integer(0, len(changed))] if draw.chance(0.3) else changed)
    with np.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name].copy() for name in archive.files}
    column = arrays[draw.choice(sorted(arrays))]
    if len(column):
        most = int(np.iinfo(column.dtype).max)
        column[draw.integer(0, len(column) - 1)] = draw.choice([0, 1, 2, most, most // 2])
    written = io.BytesIO()
    np.savez(written, allow_pickle=False, **arrays)
    return written.getvalue()


def _arguments(name: str, draw: Draw) -> dict[str, int | str]:
    if name == "fork-join":
        return {"first": draw.integer(1, 4), "second": draw.integer(1, 4)}
    if name == "matmul":
        sizes: dict[str, int | str] = {each: draw.integer(1, 4) for each in "nkm"}
        return sizes | {
            "expansion": draw.choice(["mv", "op", "lmv", "ip", "columns", "rows"]),
            "volumes": draw.choice(["exact", "array"]),
        }
    if name == "convolution":
        return {"size": draw.integer(3, 4), "kernel": draw.integer(1, 3), "filters": draw.integer(1, 2)}
    return {"size": draw.choice([2, 4, 8]) if name == "fft" else draw.integer(2, 4)}


def judge_dag(path: Path, case: Case, draw: Draw, show: ShowPhase) -> Outcome:
    show("dfcompile")
    words = ["schedule", str(path), "--pes", draw.choice(["1", "4", "2,64"])]
    words += ["--partition", draw.choice(["sb-lts", "sb-rlx", "best", "work-ordered", "sb-lts,sb-rlx"])]
    if draw.chance(0.3):
        words += ["--timing", "exact"]
    if draw.chance(0.3):
        words += ["--simulate"]
    if draw.chance(0.2):
        words += ["--fifo", draw.choice(["minimal", "4"])]
    return run_command([*words, "--format", draw.choice(["table", "json", "csv"])])
