"""Judges the figures of a report under drawn options: one that its audit does not find again is an internal error."""

from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.command_line import run_command
from tests.fuzz.draw import Draw
from tests.fuzz.kind import Case, ShowPhase
from tests.fuzz.outcome import Outcome

# What may stand on a command line beside a model, and how often it does.
_RARELY: Sequence[tuple[float, Sequence[str]]] = (
    (0.1, ("--max-fifo=1", "--max-fifo=16")),
    (0.1, ("--timing=steady",)),
    (0.1, ("--repeat=2", "--repeat=5")),
    (0.1, ("--volumes=array",)),
    (0.1, ("--barrier", "--no-barrier")),
    (0.1, ("--overlap=none", "--overlap=compute-memory")),
    (0.1, ("--granularity=pieces=3", "--granularity=max-tasks=2", "--granularity=split=4")),
)
_MACHINES = ("sn10", "sn30", "sn40_like", "genz_decode", "h100", "tpu")


def judge_figures(path: Path, case: Case, draw: Draw, show: ShowPhase) -> Outcome:
    """Return what came of a model with drawn options on a drawn machine."""
    show("dfcompile")
    words = [str(path), "--pes", draw.choice(["1", "4", "64", "2,16"])]
    if draw.chance(0.75):  # choosing, which is the default, takes several times as long
        words += ["--expand", draw.choice(["published", "published", "published", "auto"])]
    if draw.chance(0.4):
        words += ["--system", draw.choice(_MACHINES), "--chips", draw.choice(["1", "2", "4", "1,8"])]
    partition = draw.choice(["best", "best", "sb-rlx", "sb-lts", "work-ordered"])
    rarely = [draw.choice(choices) for chance, choices in _RARELY if draw.chance(chance)]
    return run_command([*words, "--partition", partition, *rarely])
