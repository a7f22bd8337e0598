"""Judges what a mapping moves beside what every run has to move: a report with less is an internal error."""

from pathlib import Path

from tests.fuzz.command_line import run_command
from tests.fuzz.draw import Draw
from tests.fuzz.kind import Case, ShowPhase
from tests.fuzz.outcome import Outcome


def judge_traffic(path: Path, case: Case, draw: Draw, show: ShowPhase) -> Outcome:
    """Return what came of a model on a machine whose memory is drawn."""
    show("dfcompile")
    memory = ["--max-fifo", draw.choice(["1", "16"])] if draw.chance(0.3) else []
    chips = ["--system", "sn30", "--chips", draw.choice(["2", "4"])] if draw.chance(0.2) else []
    return run_command([str(path), "--pes", draw.choice(["1", "4", "64"]), "--expand", "published", *memory, *chips])
