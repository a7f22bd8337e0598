"""FIFOs and tasks that take cycles: all that a schedule says follows the machine."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import dfcompile as df
from dfcompile.api.schedule_dag import schedule as schedules_of
from dfcompile.audit.schedules import audit_schedules
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.hardware import Hardware
from dfcompile.errors import UserError, VerificationError
from dfcompile.generators.canonical_dags import chain
from dfcompile.options import Fifos, Timing
from dfcompile.plan import plan_of
from dfcompile.records import replace
from dfcompile.report.schedule_summary import summarize_schedules
from dfcompile.scheduler import ScheduleOptions, check, schedule, schedule_non_streaming
from dfcompile.scheduler.activity import activity
from dfcompile.scheduler.checked_schedule import Scheduling
from dfcompile.scheduler.fifo import minimal_fifo_sizes
from dfcompile.scheduler.recomputation import recompute_times
from dfcompile.scheduler.simulation import NEVER, simulate
from dfcompile.scheduler.simulation.replay import reversed_dag, reversed_replay
from dfcompile.scheduler.simulation.simulator import replay_of
from tests.asked_options import asked
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags, with_operators
from tests.unit.scheduler.brute_force import shortest_makespan
from tests.unit.scheduler.plain_replay import PIPELINES, plain_replay
from tests.unit.scheduler.streams import all_streamed, stream_graph

MACHINES = st.builds(Hardware, st.integers(0, 4), st.integers(0, 5), st.sampled_from((None, 1, 2, 3)), PIPELINES)
PARTITIONS = ("best", "sb-rlx", "sb-lts", "work-ordered")
FIFOS: tuple[Fifos | None, ...] = (None, "in-flight", "rule", "minimal", 1, 3)


@examples(80)
@given(
    canonical_dags(DagShape(max_volume=16)).map(with_operators),
    st.builds(
        ScheduleOptions,
        st.integers(1, 6),
        st.sampled_from(PARTITIONS),
        barrier=st.sampled_from((None, True, False)),
        fifos=st.sampled_from(FIFOS),
        hardware=MACHINES,
    ),
)
def test_schedules_take_what_a_plain_replay_takes_cycle_by_cycle(dag: CanonicalDag, options: ScheduleOptions) -> None:
    found = Scheduling(dag).on(options)
    plain = plain_replay(dag, replay_of(found.schedule))

    assert found.schedule.hardware == options.hardware
    assert found.ends == (NEVER not in plain.end)
    if found.ends:
        assert found.schedule.last_out.tolist() == plain.end
        assert found.schedule.makespan_cycles >= found.figures.lower_bound_cycles


@examples(40)
@given(
    canonical_dags(DagShape(max_volume=12)).map(with_operators),
    st.integers(1, 5),
    st.sampled_from(PARTITIONS),
    MACHINES,
)
def test_reports_pass_the_audit_and_tasks_work_as_long_as_they_take(
    dag: CanonicalDag, pes: int, partition: str, hardware: Hardware
) -> None:
    scheduling = Scheduling(dag)
    options = ScheduleOptions(pes, partition, simulated=True, hardware=hardware)
    found = [scheduling.on(replace(options, timing=timing)) for timing in (Timing.EXACT, Timing.STEADY)]
    audit_schedules(summarize_schedules(scheduling, found), dag, found)

    seen = activity(dag, found[0].schedule, 2**20)
    assert seen is not None
    worked = [sum(phase.worked_cycles for phase in phases) for phases in seen.phases]
    assert worked == hardware.cycles(dag).tolist()


@examples(40)
@given(
    canonical_dags(DagShape(max_volume=12)).map(with_operators),
    st.integers(1, 5),
    st.sampled_from(PARTITIONS),
    MACHINES,
)
def test_fifos_in_flight_throttle_nothing_and_minimal_ones_cannot_be_lowered(
    dag: CanonicalDag, pes: int, partition: str, hardware: Hardware
) -> None:
    options = ScheduleOptions(pes, partition, fifos="in-flight", hardware=hardware)
    in_flight = schedule(dag, options)
    replay = replay_of(in_flight)

    assert simulate(dag, replay.unlimited(dag)).makespan_cycles == in_flight.makespan_cycles
    sizes = minimal_fifo_sizes(dag, replay)
    for edge in np.flatnonzero(sizes > 1).tolist():
        lower = sizes.copy()
        lower[edge] -= 1
        less = simulate(dag, replace(replay, fifo_capacity=lower))
        assert less.deadlock or less.makespan_cycles > in_flight.makespan_cycles


@examples(25)
@given(
    canonical_dags(DagShape(max_scopes=3, max_members=2, max_volume=5)).map(with_operators), st.integers(1, 3), MACHINES
)
def test_bounds_are_never_above_brute_force(dag: CanonicalDag, pes: int, hardware: Hardware) -> None:
    assume(dag.tasks_count <= 4 and dag.between_tasks.sum() <= 4)
    options = ScheduleOptions(pes, hardware=hardware)

    assert Scheduling(dag).on(options).figures.lower_bound_cycles <= shortest_makespan(dag, pes, options.hardware)


@examples(30)
@given(
    canonical_dags(DagShape(max_volume=16)).map(with_operators),
    st.integers(1, 6),
    st.sampled_from(PARTITIONS),
    MACHINES,
)
def test_steady_times_are_those_of_their_equations(
    dag: CanonicalDag, pes: int, partition: str, hardware: Hardware
) -> None:
    for barrier in (True, False):
        options = ScheduleOptions(pes, partition, barrier=barrier, timing=Timing.STEADY, hardware=hardware)
        found = schedule(dag, options)
        check(dag, found)
        recompute_times(dag, found)


def test_each_fifo_on_a_path_takes_its_cycles_once() -> None:
    dag = chain(6, 32, 1)
    taken = [schedule(dag, ScheduleOptions(6, "sb-rlx", hardware=Hardware(hop))).makespan_cycles for hop in range(4)]
    steady = [
        schedule(dag, ScheduleOptions(6, "sb-rlx", timing=Timing.STEADY, hardware=Hardware(hop))).makespan_cycles
        for hop in range(4)
    ]

    streams = int(dag.between_tasks.sum())
    assert np.diff(taken).tolist() == [streams] * 3
    assert np.diff(steady).tolist() == [streams] * 3


def test_a_fifo_holds_what_is_on_its_way_there_and_back() -> None:
    dag = stream_graph([("in", "a", 64), ("a", "b", 64), ("b", "out", 64)])

    def takes(capacity: int, hop: int) -> int:
        return simulate(dag, replace(all_streamed(dag, capacity), hardware=Hardware(hop))).makespan_cycles

    assert [takes(1, 0), takes(1, 1), takes(2, 1), takes(3, 2), takes(4, 2)] == [65, 129, 66, 88, 67]


def test_each_task_on_a_path_empties_its_pipeline_once() -> None:
    dag = chain(6, 32, 1)
    machines = [Hardware(0, pipeline) for pipeline in range(4)]
    for timing in (Timing.EXACT, Timing.STEADY):
        options = [ScheduleOptions(6, "sb-rlx", timing=timing, hardware=machine) for machine in machines]
        assert np.diff([schedule(dag, one).makespan_cycles for one in options]).tolist() == [6] * 3
    baselines = [schedule_non_streaming(dag, 2, machine) for machine in machines]
    assert np.diff([one.makespan_cycles for one in baselines]).tolist() == [6] * 3


@pytest.mark.parametrize(("pipelines", "more"), [((), 4), ((("Add", 7),), 4), ((("Exp", 9),), 11), ((("Exp", 0),), 2)])
def test_tasks_have_the_pipelines_of_the_operators_of_their_kernels(
    pipelines: tuple[tuple[str, int], ...], more: int
) -> None:
    """The first task is of an ``Exp``, the second one of no kernel."""
    dag = with_operators(stream_graph([("in", "a", 16), ("a", "b", 16), ("b", "out", 16)]))
    machine = Hardware(0, 2, pipelines=pipelines)
    for timing in (Timing.EXACT, Timing.STEADY):
        options = ScheduleOptions(2, "sb-rlx", timing=timing, hardware=machine)
        assert schedule(dag, options).makespan_cycles == 17 + more
    assert schedule_non_streaming(dag, 2, machine).makespan_cycles == 32 + more


def test_a_task_waits_for_the_pipeline_of_what_it_reads_backwards_as_forwards() -> None:
    """Times as late as possible: the buffer is there when the pipeline before it is empty, not that behind it."""
    dag = with_operators(stream_graph([("in", "x", 8), ("x", "a", 8), ("a", "B", 8), ("B", "b", 8), ("b", "out", 8)]))
    replay = replace(all_streamed(dag, 8), hardware=Hardware(0, 1, pipelines=(("Add", 5), ("Exp", 20))))
    early, late = simulate(dag, replay), simulate(reversed_dag(dag), reversed_replay(replay))

    assert late.makespan_cycles == early.makespan_cycles


@pytest.mark.parametrize("volume", [4, 600])
@pytest.mark.parametrize("is_shared", [False, True])
def test_readers_of_one_task_end_when_their_own_pipelines_are_empty(volume: int, *, is_shared: bool) -> None:
    """Readers do the same at the same times but for their pipelines; one may have to wait for the end of another."""
    readers = [("hub", f"r{number}", volume) for number in range(5)]
    behind = [(f"r{number}", f"s{number}", volume) for number in range(5)]
    dag = with_operators(stream_graph([("in", "hub", volume), *readers, *behind, ("s1", "out", volume)]))
    replay = replace(all_streamed(dag, volume), hardware=Hardware(1, 2, 2, (("Add", 5), ("Exp", 20))))
    if is_shared:
        pe = replay.pe.copy()
        names = [dag.node_name(node) for node in range(dag.nodes_count)]
        pe[names.index("r4")] = pe[names.index("r0")]
        replay = replace(replay, pe=pe)

    plain = plain_replay(dag, replay)
    assert len({plain.end[node] for node in range(2, dag.nodes_count)}) > 3
    assert simulate(dag, replay, details=False).end.tolist() == plain.end


def test_a_machine_says_the_pipelines_of_some_operators(tmp_path: Path) -> None:
    dag = with_operators(stream_graph([("in", "a", 16), ("a", "b", 16), ("b", "out", 16)]))
    elastic = (Path(df.__file__).parent / "dfmodel_backend/machine/systems/elastic.yaml").read_text()
    system = tmp_path / "operators.yaml"

    def of(pipelines: str) -> Hardware:
        system.write_text(elastic.replace("  ports: 2", f"  operator_pipeline_cycles: {pipelines}"))
        run = schedules_of(dag, pes="2", system=str(system))
        told = next(one.value for one in run.report.assumptions if one.name == "pipelines")
        assert told == "an element leaves its task 1 cycle later than in the literature, one of Exp 9 cycles"
        return run.schedules[0].schedule.hardware

    assert of("{Exp: 9, Add: 1}") == Hardware(2, 1, pipelines=(("Exp", 9),))
    with pytest.raises(
        UserError, match=r"\d+: key 'streams.operator_pipeline_cycles.Add': found -1 against .*at least 0"
    ):
        of("{Exp: 9, Add: -1}")
    with pytest.raises(UserError, match=r"pipeline_cycles.Matmul': no operator .* \(did you mean 'MatMul'\?\)"):
        of("{Matmul: 1, Exp: 9}")  # as others have: nothing else would tell
    with pytest.raises(UserError, match=r"pipeline_cycles.Matmul': no operator .* \(did you mean 'MatMul'\?\)"):
        plan_of(asked(tmp_path / "model.onnx", (2,), system=str(system)))
    assert of("{Exp: 9, MatMul: 1}") == Hardware(2, 1, pipelines=(("Exp", 9),))  # a type that the graph has not


def test_a_fifo_holds_what_is_in_the_pipeline_before_it() -> None:
    dag = stream_graph([("in", "a", 64), ("a", "b", 64), ("b", "out", 64)])

    def takes(capacity: int, pipeline: int) -> int:
        return simulate(dag, replace(all_streamed(dag, capacity), hardware=Hardware(0, pipeline))).makespan_cycles

    assert [takes(1, 0), takes(1, 1), takes(2, 1), takes(2, 3), takes(4, 3)] == [65, 67, 67, 102, 71]


@pytest.mark.parametrize(
    ("ports", "of_sum", "all_cycles"), [(None, 32, 34), (4, 32, 34), (3, 64, 66), (2, 64, 66), (1, 128, 130)]
)
def test_a_task_of_four_inputs_takes_them_one_group_after_another(
    ports: int | None, of_sum: int, all_cycles: int
) -> None:
    ends = (
        [("in", maker) for maker in "abcd"] + [(maker, "sum") for maker in "abcd"] + [("sum", "last"), ("last", "out")]
    )
    dag = stream_graph([(source, target, 32) for source, target in ends])
    hardware = Hardware(ports=ports)
    options = ScheduleOptions(6, "sb-rlx", hardware=hardware)

    assert hardware.cycles(dag).max() == of_sum
    assert schedule(dag, options).makespan_cycles == all_cycles
    baseline = schedule_non_streaming(dag, 6, hardware)
    assert baseline.makespan_cycles == 32 + of_sum + 32


def test_nothing_streams_where_hops_cost_more() -> None:
    dag = stream_graph([("in", "a", 1), ("a", "b", 1), ("b", "c", 1), ("c", "out", 1)])
    found = schedule(dag, ScheduleOptions(4, "best", hardware=Hardware(5)))

    assert found.makespan_cycles == 3
    assert not found.streamed.any()


def test_the_checker_rejects_an_element_that_is_there_too_early() -> None:
    dag = chain(2, 8, 1)
    made = schedule(dag, ScheduleOptions(2, "sb-rlx"))

    with pytest.raises(VerificationError, match="starts before its input streams"):
        check(dag, replace(made, hardware=Hardware(1)))


def test_the_machine_says_what_its_fifos_are(tmp_path: Path) -> None:
    dag = chain(4, 32, 1)
    elastic = Path(df.__file__).parent / "dfmodel_backend/machine/systems/elastic.yaml"
    slow = tmp_path / "slow.yaml"
    slow.write_text(elastic.read_text().replace("latency_cycles: 1", "latency_cycles: 4"))
    runs = [schedules_of(dag, pes="4", partition="sb-rlx", system=system) for system in (None, "elastic", str(slow))]

    assert [run.schedules[0].schedule.hardware.hop_cycles for run in runs] == [0, 2, 5]
    assert [run.schedules[0].schedule.hardware.pipeline_cycles for run in runs] == [0, 1, 1]
    told = [[one.value for one in run.report.assumptions if one.name == "pipelines"] for run in runs]
    assert [run.schedules[0].schedule.hardware.ports for run in runs] == [None, 2, 2]
    assert told == [[], *[["an element leaves its task 1 cycle later than in the literature"]] * 2]
    said = [[one.value for one in run.report.assumptions if one.name == "FIFOs"] for run in runs]
    assert said == [
        ["pass through: read in the cycle of the write, and refilled in that of the read"],
        ["an element is there 2 cycles after its write, and its place 2 cycles after its read"],
        ["an element is there 5 cycles after its write, and its place 5 cycles after its read"],
    ]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("fifo: registered", "fifo: rigid", "key 'streams.fifo': found 'rigid' against"),
        ("latency_cycles: 1", "latency_cycles: -1", "key 'streams.latency_cycles': found -1 against a whole number of"),
        ("ports: 2", "ports: 0", "key 'streams.ports': found 0 against a whole number of"),
        ("latency_cycles: 1", "latency: 1", r"unknown key 'streams.latency' \(did you mean 'latency_cycles'\?\)"),
    ],
)
def test_wrong_streams_of_a_system_file_are_one_line(tmp_path: Path, key: str, value: str, message: str) -> None:
    elastic = Path(df.__file__).parent / "dfmodel_backend/machine/systems/elastic.yaml"
    file = tmp_path / "wrong.yaml"
    file.write_text(elastic.read_text().replace(key, value))

    with pytest.raises(UserError, match=message):
        schedules_of(chain(2, 4, 1), pes="2", system=str(file))
