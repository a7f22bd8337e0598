"""The smallest models on tight machines: no order of few tasks and nothing that SRAM may hold is faster by over 2 %."""

from pathlib import Path

import dfcompile as df
from tests.fuzz.draw import Draw
from tests.fuzz.drawn_machines import DrawnMachine
from tests.fuzz.kind import Case, ShowPhase
from tests.fuzz.outcome import Outcome, Verdict
from tests.fuzz.small_models import smallest_model
from tests.whole.brute_force import BruteForce
from tests.whole.every_holding import Looks
from tests.whole.every_order import faster_order

_PES = (1, 2, 2, 3)
_SRAM = (8, 16, 24, 40, 100)
_GB_PER_S = (0.5, 4.0, 10.0)
_LOOKS = 150_000
_NEAR = 1.02


def drawn_smallest_model(draw: Draw) -> Case:
    return Case(".onnx", smallest_model(draw))


def judge_orders(path: Path, case: Case, draw: Draw, show: ShowPhase) -> Outcome:
    """Return what came of a model: whether some mapping of few tasks is faster than the one that is made by default."""
    machine = DrawnMachine(draw.choice(_PES), draw.choice(_SRAM), draw.choice(_GB_PER_S))
    show("choosing")
    run = df.compile(path, pes=[machine.pes], system=machine.file())
    (point,) = run.exploration.points
    chosen_s = point.attained.time_s
    show("trying all")
    ways = BruteForce(run.exploration.model.program)
    best, is_all = faster_order(ways, point.system, chosen_s / _NEAR, Looks(_LOOKS))
    if best is not None:
        detail = f"{chosen_s * 1e9:.1f} against {best.time_s * 1e9:.1f} ns on {machine} in another order"
        return Outcome(Verdict.SLOWER, "slower than another mapping of few tasks", detail)
    return Outcome(Verdict.ACCEPTED if is_all else Verdict.NOT_COMPARED, "" if is_all else "not all orders were tried")
