"""Choices are compared by what their tasks take on a machine."""

import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.choosing.candidate import Candidate
from dfcompile.choosing.estimate import Memory
from dfcompile.choosing.scoring import Machine, Makespans, OnMachine
from dfcompile.choosing.sketches import Sketches
from dfcompile.lowering import registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Effort, Volumes
from dfcompile.scheduler import ScheduleOptions, streaming_schedule
from dfcompile.scheduler.listing import listed_schedules
from dfcompile.scheduler.streaming_schedule import TimedSchedule
from tests.onnx_text import program_from_text

PES = 12
PROGRAM = program_from_text("g (float[64] x) => (float[64] c) { a = Relu(x) b = Exp(a) c = Neg(b) }")


@pytest.mark.parametrize(
    ("bytes_per_cycle", "moved", "asked"),
    [
        (1.0, 512, [False]),  # DRAM takes 512 cycles in any case
        (1.0, 600, [False, True]),  # what streams may move less
        (100.0, 512, [True]),  # tasks decide
    ],
)
def test_gangs_are_looked_at_where_they_may_be_faster(
    bytes_per_cycle: float, moved: int, asked: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vector of 64 words is read and written; eight tasks of each operator follow one another."""
    monkeypatch.setattr(streaming_schedule, "QUICK_NODES", -1)
    monkeypatch.setattr(listed_schedules, "is_listable", lambda *_: False)
    streams: list[bool] = []

    def fastest(dag: CanonicalDag, timed: TimedSchedule) -> OnMachine:
        assert dag.tasks_count == 24
        streams.append(bool(timed.schedule.streamed.any()))
        return OnMachine(max(timed.schedule.makespan_cycles, moved / bytes_per_cycle), timed.schedule, {})

    memory = Memory(float("inf"), bytes_per_cycle)
    scores = Makespans(
        Volumes.EXACT,
        ScheduleOptions(PES, "best", effort=Effort.QUICK),
        lambda dag: dag,
        machine=Machine(memory, fastest),
    )
    outline_of = OutlinedModel(PROGRAM, registered_expansions()).outline
    sketch = Sketches(outline_of, Volumes.EXACT, PES, Effort.QUICK, memory).required(
        Candidate((), Granularity(pieces=8))
    )

    time = scores.of(sketch)[0]

    assert streams == asked
    assert scores.made is not None
    assert scores.made.timed.schedule.streamed.any() == asked[-1]
    assert time >= scores.bound(sketch)[0]
