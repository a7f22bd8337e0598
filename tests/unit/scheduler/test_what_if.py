"""What a schedule takes with other parts, and nothing else changed: alone and together."""

from dataclasses import replace as with_field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.api.schedule_dag import schedule as schedules_of
from dfcompile.audit.schedules import audit_schedules
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.hardware import Hardware
from dfcompile.dfmodel_backend.machine.system import FifoKind, OnChipStreams
from dfcompile.errors import UserError, VerificationError
from dfcompile.generators.canonical_dags import chain, cholesky
from dfcompile.records import replace
from dfcompile.report.schedule_summary import summarize_schedules
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.checked_schedule import Scheduling
from dfcompile.scheduler.simulation import NEVER
from dfcompile.scheduler.simulation.simulator import replay_of
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags
from tests.unit.scheduler.plain_replay import plain_replay

PARTS: dict[str, int | str] = {"fifo": "registered", "latency": 2, "pipeline": 3, "ports": 1}


@examples(40)
@given(canonical_dags(DagShape(max_volume=12)), st.integers(1, 6), st.sampled_from((None, "minimal", 1, 3)))
def test_the_same_schedule_is_replayed_on_each_machine(dag: CanonicalDag, pes: int, fifos: str | int | None) -> None:
    scheduling, machines = Scheduling(dag), OnChipStreams().others(PARTS)
    found = scheduling.on(ScheduleOptions(pes, "sb-rlx", fifos=fifos, what_if=machines))  # type: ignore[arg-type]

    assert [one.change for one in found.what_if] == ([change for change, _ in machines] if found.ends else [])
    for one in found.what_if:
        plain = plain_replay(dag, replace(replay_of(found.schedule), hardware=one.hardware))
        assert one.makespan_cycles == (None if NEVER in plain.end else max(plain.end, default=0))
        anew = Scheduling(dag).on(ScheduleOptions(pes, "sb-rlx", fifos=fifos, hardware=one.hardware))  # type: ignore[arg-type]
        assert one.anew_cycles == anew.figures.makespan_cycles
    audit_schedules(summarize_schedules(scheduling, [found]), dag, [found])


def test_parts_are_those_of_the_machine_but_for_what_is_asked() -> None:
    streams = OnChipStreams(FifoKind.REGISTERED, latency_cycles=1, ports=2)

    assert streams.others({}) == ()
    assert streams.others({"pipeline": 4}) == (("pipeline=4", Hardware(2, 4, 2)),)
    assert replace(streams, operator_pipeline_cycles={"Exp": 9}).others({"pipeline": 4, "ports": 1}) == (
        ("pipeline=4", Hardware(2, 4, 2)),
        ("ports=1", Hardware(2, 0, 1, (("Exp", 9),))),
        ("together", Hardware(2, 4, 1)),
    )
    assert streams.others({"fifo": "pass-through", "latency": 3}) == (
        ("fifo=pass-through", Hardware(1, 0, 2)),
        ("latency=3", Hardware(4, 0, 2)),
        ("together", Hardware(3, 0, 2)),
    )


def test_the_report_has_a_row_for_each_change_and_for_all() -> None:
    run = schedules_of(chain(4, 32, 1), pes="4", partition="sb-rlx", fifo="2", what_if="latency=2,ports=2")
    summary = run.report.results[0].schedule

    assert summary.makespan_cycles is not None
    assert [one.change for one in summary.what_if] == ["latency=2", "ports=2", "together"]
    assert [one.ratio for one in summary.what_if][1] == 1  # no task of a chain has three edges on a side
    assert summary.what_if[0] == with_field(summary.what_if[2], change="latency=2")


def test_the_page_and_the_table_have_both_schedules() -> None:
    dag = cholesky(5, 64)
    run = schedules_of(dag, pes="16", what_if="ports=2")
    (other,) = run.report.results[0].schedule.what_if

    anew = Scheduling(dag).on(ScheduleOptions(16, "best", hardware=Hardware(ports=2))).figures.makespan_cycles
    assert other.anew_cycles == anew != other.makespan_cycles
    for shown in (run.table, run.page("dfcompile schedule")):
        assert all(f"{cycles:,}" in shown for cycles in (other.makespan_cycles, anew))
    assert "Cycles with other parts, of 16 PEs" in run.page("dfcompile schedule")


def test_the_audit_refuses_another_makespan() -> None:
    dag = cholesky(3, 8)
    scheduling = Scheduling(dag)
    found = scheduling.on(ScheduleOptions(4, what_if=OnChipStreams().others({"ports": 1})))
    (one,) = found.what_if
    for name, other in (
        ("makespan_cycles", replace(one, makespan_cycles=1)),
        ("anew_cycles", replace(one, anew_cycles=1)),
    ):
        wrong = replace(found, what_if=(other,))
        with pytest.raises(VerificationError, match=rf"what_if\[0\].{name}"):
            audit_schedules(summarize_schedules(scheduling, [wrong]), dag, [wrong])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("fifo", "--what-if: found 'fifo' against PART=VALUE"),
        ("depth=2", r"--what-if 'depth': unknown \(known: fifo, latency, pipeline, ports\)"),
        ("fifo=deep", r"--what-if fifo 'deep': unknown \(known: pass-through, registered\)"),
        ("ports=0", "--what-if ports: found '0' against 1 to 1000000"),
        ("latency=2,latency=3", "--what-if: part 'latency' is given twice"),
        ("latency=1000001", "--what-if latency: found '1000001' against 0 to 1000000"),
    ],
)
def test_what_is_no_part_is_one_line(given: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        schedules_of(chain(2, 4, 1), pes="2", what_if=given)


def test_steady_times_are_refused() -> None:
    with pytest.raises(UserError, match="--what-if: found steady times against those of a replay"):
        schedules_of(chain(2, 4, 1), pes="2", timing="steady", what_if="ports=1")
