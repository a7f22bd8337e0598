"""Operators that hand on more than memory holds get more tasks together, where DRAM would take longer than tasks."""

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.choosing.candidate import Candidate, Space
from dfcompile.choosing.estimate import Memory
from dfcompile.choosing.operator_options import OperatorOptions
from dfcompile.choosing.sketches import Sketch, Sketches
from dfcompile.choosing.together import in_more_tasks
from dfcompile.lowering import registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Choice, Effort, Volumes
from dfcompile.records import replace
from tests.onnx_text import program_from_text

PES = 64
SHAPE = "float[64,16,16]"  # a kB for each of 64 slices
PROGRAM = program_from_text(f"g ({SHAPE} a, {SHAPE} b) => ({SHAPE} y) {{ z = MatMul(a, b) y = MatMul(z, b) }}")
ROWS = (Choice("MatMul", "rows"),)
OPERATORS = (OperatorOptions(("MatMul_0", "MatMul_1"), ()),)
TIGHT = Memory(8 * 1024, 1.0)


def better(memory: Memory | None, most_tasks: int, user: tuple[Granularity, ...] = ()) -> tuple[Sketch, Sketch]:
    """Return a choice of 64 tasks for each product, all of which work at a time, and what becomes of it."""
    sketches = Sketches(
        OutlinedModel(PROGRAM, registered_expansions()).outline, Volumes.EXACT, PES, Effort.QUICK, memory
    )
    space = Space({}, {"MatMul": ("rows", "columns")}, {}, (), user or (Granularity(), Granularity(pieces=64)))
    best = sketches.required(Candidate(ROWS, Granularity(pieces=64)))
    return best, in_more_tasks(best, OPERATORS, space, sketches, most_tasks)


def test_both_get_as_many_more_as_leave_room_for_what_they_hand_on() -> None:
    """Of 512 tasks for each 64 work on 8 slices, which fit; of 256 on 16."""
    before, after = better(TIGHT, 1024)

    pieces = [after.candidate.granularity.pieces_of(origin) for origin in ("MatMul_0", "MatMul_1")]
    assert pieces == [512, 512]
    assert after.candidate.choices == before.candidate.choices
    assert after.estimate.memory_cycles < before.estimate.memory_cycles


def test_there_are_a_quarter_more_tasks_at_most() -> None:
    assert better(TIGHT, 410)[1].estimate.tasks == 512
    before, after = better(TIGHT, 409)
    assert after is before


def test_nothing_changes_where_tasks_take_longer_or_all_stays() -> None:
    for memory in (replace(TIGHT, bytes_per_cycle=1e6), replace(TIGHT, sram_bytes=1e6), None):
        before, after = better(memory, 1024)
        assert after is before


def test_what_the_user_says_of_tasks_stays() -> None:
    of_all, of_one = (Granularity(pieces=64),), Granularity(own=(("MatMul_1", 64),))
    for user in (of_all, (of_one, replace(of_one, pieces=64))):
        before, after = better(TIGHT, 1024, user)
        assert after is before
