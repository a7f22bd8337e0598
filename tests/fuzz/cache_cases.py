"""Caches of explorations, damaged; judged by ``dfcompile explore``, which ends as it does without a cache."""

import tempfile
from functools import cache
from pathlib import Path

from tests.fuzz.cache_damages import STAYING, damaged, is_of_whole_lines, put_something_else
from tests.fuzz.command_line import Ran, ran
from tests.fuzz.draw import Draw
from tests.fuzz.kind import Case, ShowPhase
from tests.fuzz.outcome import Outcome, Verdict
from tests.fuzz.system_cases import small_model

QUESTION = ("--pes", "2,4", "--on-chip-memory", "1,2", "--expand", "MatMul=mv,op", "--jobs", "1", "--format", "json")
WARNING = "dfcompile: warning: cache "
SECRET = "what somebody else has in a file"


def damaged_cache(draw: Draw) -> Case:
    return Case(".cache", damaged(_kept()[0], draw))


def judge_cache(path: Path, case: Case, draw: Draw, show: ShowPhase) -> Outcome:
    """Explore twice with the damaged cache, or with something else in its place."""
    answer = _kept()[1]
    show("dfcompile")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        place, secret = Path(folder, "kept", path.name), Path(folder, "secret").resolve()
        place.parent.mkdir()
        secret.write_text(SECRET)
        place.write_bytes(case.content)
        what = put_something_else(place, secret, draw) if draw.chance(0.2) else ""
        runs = [_explored(Path(folder), place) for _ in range(2)]
        is_kept = secret.read_text() == SECRET
    for run in runs:
        if run.outcome.verdict.is_finding:
            return run.outcome
    first, second = (run.err.splitlines() for run in runs)
    is_said = bool(what) or not is_of_whole_lines(case.content)
    faults = {
        "refused": any(run.outcome.verdict is not Verdict.ACCEPTED for run in runs),
        "another answer": any(run.out != answer for run in runs),
        "nothing is said": is_said and not first,
        "something else is said": any(not line.startswith(WARNING) or not line.isprintable() for line in first),
        "said twice": len(first) != len(set(first)),
        "not mended": bool(second) is not (what in STAYING),
        "another file is changed": not is_kept,
    }
    for fault, is_so in faults.items():
        if is_so:
            return Outcome(Verdict.BUG, f"cache: {fault} ({what or 'damage'})", "\n".join((*first, *second)))
    return runs[0].outcome


def _explored(folder: Path, place: Path) -> Ran:
    model = folder / "small.onnx"
    model.write_bytes(small_model())
    return ran(["explore", str(model), *QUESTION, "--cache", str(place)])


@cache
def _kept() -> tuple[bytes, str]:
    """Return what an exploration leaves in a cache, and what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "cache")
        run = _explored(Path(folder), place)
        return place.read_bytes(), run.out
