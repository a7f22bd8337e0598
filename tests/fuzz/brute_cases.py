"""Tiny models on drawn machines: no way to lower and divide one is faster than the default choice by more than 2 %."""

from pathlib import Path

import dfcompile as df
from tests.fuzz.draw import Draw
from tests.fuzz.drawn_machines import drawn_machine
from tests.fuzz.kind import Case, ShowPhase
from tests.fuzz.outcome import Outcome, Verdict
from tests.fuzz.small_models import tiny_model
from tests.whole.brute_force import BruteForce

_MOST_COMBINATIONS = 3_000
_MOST_MAPPED = 25
_NEAR = 1.02


def drawn_tiny_model(draw: Draw) -> Case:
    return Case(".onnx", tiny_model(draw))


def judge_brute(path: Path, case: Case, draw: Draw, show: ShowPhase) -> Outcome:
    """Return what came of a model: whether a way to lower and divide it is faster than the one chosen by default."""
    machine = drawn_machine(draw)
    show("choosing")
    run = df.compile(path, pes=[machine.pes], system=machine.file())
    (point,) = run.exploration.points
    ways = BruteForce(run.exploration.model.program)
    if ways.size > _MOST_COMBINATIONS:
        return Outcome(Verdict.NOT_COMPARED, "too many ways to lower a tiny model")
    show("trying all")
    chosen_s = point.attained.time_s
    best, is_all = ways.faster(point.system, chosen_s / _NEAR, _MOST_MAPPED)
    if best is not None:
        detail = f"{chosen_s * 1e9:.1f} against {best.time_s * 1e9:.1f} ns on {machine} by {best.line(machine.pes)}"
        return Outcome(Verdict.SLOWER, "slower than another way to lower a tiny model", detail)
    return Outcome(Verdict.ACCEPTED if is_all else Verdict.NOT_COMPARED, "" if is_all else "not all ways were mapped")
