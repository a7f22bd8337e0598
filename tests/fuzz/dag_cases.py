"""Canonical DAG files, generated and then mutated; judged by ``dfcompile schedule``."""

from pathlib import Path

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
    form = draw.choice(["text", "text", "json"])
    written = find_generator(name).write(arguments, form)
    assert isinstance(written, str)
    return Case(".json" if form == "json" else ".dag", mutated_text(written, draw))


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
