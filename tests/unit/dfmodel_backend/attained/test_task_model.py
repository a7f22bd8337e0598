"""What a set of kernels takes: of two ways to schedule it the faster one."""

from dfcompile.dfmodel_backend import Overlap, TaskModel, load_system
from dfcompile.generators.canonical_dags import cholesky
from dfcompile.scheduler import ScheduleOptions

DAG = cholesky(3, 16, 1)
PES = 2


def cycles(*, planned: str, asked: str) -> int:
    options = (ScheduleOptions(PES, asked), ScheduleOptions(PES, planned))
    model = TaskModel(DAG, load_system(None).with_cores(PES), *options, Overlap.PERFECT_OVERLAP)
    found = model.configuration((1 << model.units.count) - 1)
    assert found is not None
    return found.cycles


def test_the_faster_of_what_is_planned_and_what_is_asked_for_is_taken() -> None:
    slow, fast = (cycles(planned=name, asked=name) for name in ("work-ordered", "sb-lts"))

    assert fast < slow
    assert cycles(planned="work-ordered", asked="sb-lts") == fast
    assert cycles(planned="sb-lts", asked="work-ordered") == fast
