"""What a set of kernels takes: of two ways to schedule it the faster one."""

from collections.abc import Iterator

import pytest

from dfcompile.dfmodel_backend import Overlap, TaskModel, load_system
from dfcompile.dfmodel_backend.attained import part_schedules, task_model
from dfcompile.dfmodel_backend.attained.stores import StoreTable
from dfcompile.dfmodel_backend.attained.task_model import Chosen, TaskConfiguration
from dfcompile.dfmodel_backend.machine.system import Amount, System
from dfcompile.generators.canonical_dags import cholesky
from dfcompile.options import Timing
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler import schedule as schedule_of

DAG = cholesky(3, 16, 1)
PES = 2
SRAM_BYTES = 40  # the FIFOs fit, what is kept does not


def chip(gb_per_s: float) -> System:
    system = load_system(None).with_cores(PES)
    small = replace(system.accelerator, sram=Amount(SRAM_BYTES))
    return replace(system, accelerator=small, dram=replace(system.dram, bandwidth=Amount(gb_per_s)))


def whole(*, planned: str, asked: str, gb_per_s: float, overlap: Overlap) -> TaskConfiguration:
    options = (ScheduleOptions(PES, asked), ScheduleOptions(PES, planned))
    model = TaskModel(DAG, chip(gb_per_s), *options, overlap)
    found = model.configuration((1 << model.units.count) - 1)
    assert found is not None
    return found


def cycles(*, planned: str, asked: str, gb_per_s: float = 100.0, overlap: Overlap = Overlap.PERFECT_OVERLAP) -> int:
    return whole(planned=planned, asked=asked, gb_per_s=gb_per_s, overlap=overlap).cycles


def test_the_faster_of_what_is_planned_and_what_is_asked_for_is_taken() -> None:
    slow, fast = (cycles(planned=name, asked=name) for name in ("work-ordered", "sb-lts"))

    assert fast < slow
    assert cycles(planned="work-ordered", asked="sb-lts") == fast
    assert cycles(planned="sb-lts", asked="work-ordered") == fast


def test_where_memory_takes_longer_no_other_way_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_schedules, "_SCHEDULED_BOTH_WAYS", 0)
    slow = whole(planned="work-ordered", asked="sb-lts", gb_per_s=0.01, overlap=Overlap.PERFECT_OVERLAP)

    alone = whole(planned="work-ordered", asked="work-ordered", gb_per_s=0.01, overlap=Overlap.PERFECT_OVERLAP)
    assert slow.bound_by == "memory"
    assert (slow.cycles, slow.time_ns) == (alone.cycles, alone.time_ns)


def test_where_nothing_overlaps_the_sum_of_both_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_schedules, "_SCHEDULED_BOTH_WAYS", 0)
    ways = [
        whole(planned=name, asked=name, gb_per_s=0.01, overlap=Overlap.NO_OVERLAP)
        for name in ("work-ordered", "sb-lts")
    ]
    both = whole(planned="work-ordered", asked="sb-lts", gb_per_s=0.01, overlap=Overlap.NO_OVERLAP)

    assert both.time_ns == min(each.time_ns for each in ways)


def test_the_schedule_that_a_choice_took_of_a_large_lowering_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_model, "_FEW_NODES", 0)
    options, system = ScheduleOptions(PES, "sb-lts"), load_system(None).with_cores(PES)
    model = TaskModel(DAG, system, options, options, Overlap.PERFECT_OVERLAP)
    slower = schedule_of(DAG, replace(options, partition="work-ordered", timing=Timing.EXACT))
    taken = model.whole(slower)
    assert taken is not None
    assert taken.cycles < slower.makespan_cycles  # nothing that streams so badly

    chosen = Chosen(replace(taken, schedule=slower), model.stores)
    again = replace(model, chosen=chosen)
    everything = (1 << model.units.count) - 1
    assert again.configuration(everything).schedule is slower
    assert again.planned(everything).schedule is slower
    monkeypatch.setattr(task_model, "_FEW_NODES", DAG.nodes_count)
    assert replace(model, chosen=chosen).configuration(everything).cycles < slower.makespan_cycles


def test_what_a_choice_was_mapped_by_is_told_in_the_names_of_the_lowering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_model, "_FEW_NODES", 0)
    options, system = ScheduleOptions(PES, "sb-lts"), load_system(None).with_cores(PES)
    named = replace(DAG, scopes=tuple(replace(scope, name=f"{scope.name}_again") for scope in DAG.scopes))
    chosen, alone = (TaskModel(dag, system, options, options, Overlap.PERFECT_OVERLAP) for dag in (DAG, named))
    known = schedule_of(DAG, replace(options, partition="work-ordered", timing=Timing.EXACT))
    taken, expected = chosen.whole(known), alone.whole(known)
    assert taken is not None
    assert expected is not None

    everything = (1 << alone.units.count) - 1
    found = replace(alone, chosen=Chosen(taken, chosen.stores)).configuration(everything)
    monkeypatch.setattr(StoreTable, "is_like", lambda *_: False)  # it holds a result, say, where the other does not
    anew = replace(alone, chosen=Chosen(replace(taken, stores=()), chosen.stores)).configuration(everything)

    for each in (found, anew):
        assert each.stores
        assert (each.kernels, each.stores, each.time_ns) == (expected.kernels, expected.stores, expected.time_ns)
        assert each.schedule is taken.schedule


def test_no_smaller_fifos_are_tried_while_choices_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[ScheduleOptions]()
    find = part_schedules.PartWays._small_fifos

    def noted(ways: part_schedules.PartWays, options: ScheduleOptions) -> Iterator[ScheduleOptions]:
        tried.append(options)
        return find(ways, options)

    monkeypatch.setattr(part_schedules.PartWays, "_small_fifos", noted)
    monkeypatch.setattr(task_model, "_SMALLEST_NODES", 0)
    options = ScheduleOptions(PES, "best")
    model = TaskModel(DAG, chip(gb_per_s=0.01), options, options, Overlap.PERFECT_OVERLAP)
    model.whole(schedule_of(DAG, options))

    assert not tried
    model.configuration((1 << model.units.count) - 1)
    assert tried
