"""Where the schedule of a choice waits for DRAM, what moves most too much is lowered in other ways."""

from types import SimpleNamespace
from typing import cast

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.choosing.candidate import Candidate, Space
from dfcompile.choosing.estimate import Memory
from dfcompile.choosing.operator_options import OperatorOptions
from dfcompile.choosing.relief import Relief
from dfcompile.choosing.scoring import NOTHING, Makespans, Score
from dfcompile.choosing.search import Selection
from dfcompile.choosing.sketches import Sketch, Sketches
from dfcompile.lowering import registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Choice, Effort, Volumes
from tests.onnx_text import program_from_text

PES = 16
# Of w SRAM holds half: 64 rows of x on 16 elements read it four times, its 256 columns once.
PROGRAM = program_from_text("g (float[64,16] x, float[16,256] w) => (float[64,256] y) { y = MatMul(x, w) }")
ONCE = {"x": 4096, "w": 16384, "y": 65536}
OFTEN = {**ONCE, "w": 4 * 16384}
BEFORE: Score = (200_000.0,)


def on_machine(cycles: int, moved: dict[str, int]) -> SimpleNamespace:
    return SimpleNamespace(schedule=SimpleNamespace(makespan_cycles=cycles), moved=moved)


class Schedules:
    """Makespans of which the schedule of the choice is known; counts those of others that are asked for."""

    def __init__(self, cycles: int, moved: dict[str, int], after: Score) -> None:
        self.made = SimpleNamespace(on_machine=on_machine(cycles, moved))
        self.after, self.asked = after, list[Sketch]()

    def of(self, sketch: Sketch) -> Score:
        self.asked.append(sketch)
        self.made = SimpleNamespace(on_machine=on_machine(10**6, ONCE))
        return self.after


def relieved(schedules: Schedules, names: tuple[str, ...] = ("rows", "columns")) -> tuple[Selection, Selection]:
    """Return a choice of a task for each row, and what becomes of it."""
    memory = Memory(8 * 1024, 1.0)
    outlines = OutlinedModel(PROGRAM, registered_expansions())
    sketches = Sketches(outlines.outline, Volumes.EXACT, PES, Effort.QUICK, memory)
    space = Space({}, {"MatMul": names}, {}, (), (Granularity(), Granularity(pieces=64)))
    rows = Candidate((Choice("MatMul", "rows", "MatMul_0"),), Granularity(pieces=64))
    operators = (OperatorOptions(("MatMul_0",), ()),)
    known = Selection(sketches.required(rows), BEFORE, (), operators, None, {"MatMul_0": {"MatMul": "rows"}}, NOTHING)
    return known, Relief(space, sketches, cast("Makespans", schedules)).better(known)


def test_an_expansion_that_moves_less_is_taken_if_it_is_faster() -> None:
    faster = Schedules(16_384, OFTEN, (100_000.0,))
    _, after = relieved(faster)

    assert after.expansions == {"MatMul_0": {"MatMul": "columns"}}
    assert after.score == (100_000.0,)
    assert after.sketch is faster.asked[0]

    slower = Schedules(16_384, OFTEN, (200_001.0,))
    before, after = relieved(slower)
    assert len(slower.asked) == 1
    assert after is before


def test_nothing_is_scheduled_where_tasks_take_longer_or_all_is_moved_once_or_nothing_else_may_be_chosen() -> None:
    for schedules in (Schedules(200_000, OFTEN, (1.0,)), Schedules(16_384, ONCE, (1.0,))):
        before, after = relieved(schedules)
        assert after is before
        assert not schedules.asked

    alone = Schedules(16_384, OFTEN, (1.0,))
    before, after = relieved(alone, ("rows",))
    assert after is before
    assert not alone.asked
