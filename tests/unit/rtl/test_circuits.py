"""Circuits take the printed cycles, and end in a deadlock where the replay does, says an installed simulator."""

import re
from pathlib import Path

import numpy as np
import pytest

from dfcompile.canonical_dag import DagBuilder, NodeKind
from dfcompile.cli.main import main
from dfcompile.errors import UserError
from dfcompile.generators.canonical_dags import chain, cholesky
from dfcompile.records import replace
from dfcompile.rtl.circuit import Circuit, Waits, circuit_of
from dfcompile.rtl.folder import PRINTED, NamedCircuit, rtl_files, scheduled_circuit
from dfcompile.rtl.signals import RegularRows, identifier, regular_rows
from dfcompile.rtl.simulation import EVENT_DRIVEN, Fifos, installed_simulators
from dfcompile.scheduler import ScheduleOptions, Timing, schedule
from dfcompile.scheduler.checked_schedule import Scheduling
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of
from tests.rtl.__main__ import counted, counted_apart
from tests.rtl.drawn import drawn_circuits
from tests.unit.scheduler.streams import all_streamed, stream_graph

INSTALLED = installed_simulators()
simulated = pytest.mark.skipif(not INSTALLED, reason="neither Icarus, Yosys with g++, nor Verilator is installed")


def has_phases(circuit: Circuit) -> bool:
    """Whether a task waits for a buffer that waits for another task."""
    memory = {node for node, one in enumerate(circuit.waits) if node >= circuit.tasks and one.nodes}
    return any(not memory.isdisjoint(one.nodes) for one in circuit.waits[: circuit.tasks])


@simulated
def test_random_schedules_take_the_printed_cycles_and_deadlocks() -> None:
    circuits = drawn_circuits(100, seed=33)
    cycles = counted_apart(circuits, INSTALLED[0])

    assert cycles == [one.cycles for one in circuits]
    assert cycles.count(None) >= 5
    assert any(one.circuit.blocks for one in circuits)
    assert sum(has_phases(one.circuit) for one in circuits) >= 20
    assert any(len({family.pipeline for family in one.circuit.families}) > 1 for one in circuits)


@simulated
def test_registered_fifos_take_longer_and_places_help() -> None:
    dag = chain(6, 32)
    one = scheduled_circuit("chain", dag, schedule(dag, ScheduleOptions(6, fifos="minimal")), ends=True)
    kinds = (Fifos(), Fifos(registered=True), Fifos(registered=True, places=1))
    printed, registered, larger = (cycles[0] for cycles in counted([one], INSTALLED[0], kinds))

    assert printed == one.cycles
    assert printed is not None
    assert registered is not None
    assert larger is not None
    assert printed < larger < registered


@simulated
def test_fifos_hold_as_many_elements_as_in_the_replay() -> None:
    dag = stream_graph(
        [("in", "fork", 8), ("fork", "sum", 8), ("sum", "spread", 1), ("spread", "join", 8), ("fork", "join", 8),
         ("join", "out", 8)]
    )  # fmt: skip
    circuits = []
    for places in range(1, 10):
        found = Scheduling(dag).on(ScheduleOptions(4, "sb-rlx", fifos=places))
        circuits.append(scheduled_circuit(f"c{places}", dag, found.schedule, ends=found.ends))
    (cycles,) = counted(circuits, INSTALLED[0])

    assert cycles == [one.cycles for one in circuits]
    assert None in cycles
    assert cycles[-1] is not None


@simulated
def test_a_full_fifo_is_refilled_in_the_cycle_in_which_it_is_read() -> None:
    """The direct stream is ahead of the one through two tasks, by as much as its smallest FIFO holds."""
    ends = [("in", "fork"), ("fork", "a"), ("a", "b"), ("b", "join"), ("fork", "join"), ("join", "out")]
    dag = stream_graph([(source, target, 32) for source, target in ends])
    found = Scheduling(dag).on(ScheduleOptions(4, "sb-rlx", fifos="minimal"))
    one = scheduled_circuit("ahead", dag, found.schedule, ends=found.ends)
    (cycles,) = counted([one], INSTALLED[0])

    assert cycles == [one.cycles]
    assert one.cycles is not None
    assert one.cycles < 40  # no task waits


@simulated
def test_what_waits_in_a_circle_of_ends_is_a_deadlock() -> None:
    """Of memory alone: the buffer waits for the start of the graph, which waits for the block of the buffer."""
    builder = DagBuilder("circle")
    start = builder.add_memory(builder.add_scope("start"), NodeKind.PSEUDO_SOURCE)
    builder.add_edge(start, builder.add_memory(builder.add_scope("buffer")), 4)
    dag = builder.finish()
    circle = replace(all_streamed(dag, 1), block=np.array([1, 0], dtype=np.int32), barrier=True)
    (cycles,) = counted([NamedCircuit("circle", circuit_of(dag, circle), None)], INSTALLED[0])

    assert simulate(dag, circle).deadlock
    assert cycles == [None]


@simulated
def test_the_command_compares_and_says_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, graph = tmp_path / "circuits", tmp_path / "c.json"
    assert main(["generate", "cholesky", "--size", "3", "--volume", "16", "-o", str(graph)]) == 0
    words = ["schedule", str(graph), "--pes", "4", "--partition", "best,sb-rlx", "--emit", "rtl", str(folder)]
    assert main(words) == 0
    capsys.readouterr()

    assert main(["rtl", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [bool(re.fullmatch(r"cholesky_3_4_\w+: \d+ cycles by \w+, as printed", line)) for line in lines] == [
        True
    ] * 2

    printed = folder / "printed.json"
    printed.write_text(re.sub(r'"cycles": \d+', '"cycles": 7', printed.read_text(), count=1))
    assert main(["rtl", str(folder)]) == 1
    assert re.search(
        r"1 of 2 circuits differ, 'cholesky_3_4_best': \w+ counted \d+ cycles against 7", capsys.readouterr().err
    )

    assert main(["rtl", str(folder), "--fifo", "registered", "--places", "1"]) == 0
    assert "with registered FIFOs, each 1 larger" in capsys.readouterr().out


@pytest.mark.skipif(not set(INSTALLED) & set(EVENT_DRIVEN), reason="neither Icarus nor Verilator is installed")
def test_waves_show_every_element_that_is_stored(tmp_path: Path) -> None:
    graph, folder, waves = tmp_path / "dag.json", tmp_path / "circuits", tmp_path / "waves.vcd"
    assert main(["generate", "chain", "--size", "3", "--volume", "20", "-o", str(graph)]) == 0
    assert main(["schedule", str(graph), "--pes", "2", "--emit", "rtl", str(folder)]) == 0

    assert main(["rtl", str(folder), "--waves", str(waves)]) == 0

    (sign,) = re.findall(r"\$var wire 1 (\S+) store \$end", text := waves.read_text())
    assert text.count(f"\n1{sign}\n") == 20  # handshakes fall behind each cycle
    assert "$date" not in text


def test_waves_of_a_simulator_that_has_none_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / PRINTED).write_text('{"format": "dfcompile-rtl/1", "circuits": []}')
    assert main(["rtl", str(tmp_path), "--simulator", "cxxrtl", "--waves", str(tmp_path / "waves.vcd")]) == 1
    assert "--waves: found --simulator cxxrtl against icarus or verilator" in capsys.readouterr().err


def test_steady_times_are_no_circuit() -> None:
    dag = cholesky(3, 16)
    made = schedule(dag, ScheduleOptions(4, timing=Timing.STEADY))

    with pytest.raises(UserError, match="found steady times of 'c' against those of a replay"):
        scheduled_circuit("c", dag, made, ends=True)


def test_tasks_of_too_many_accesses_are_named() -> None:
    dag = stream_graph([("in", "a", 2**30), ("a", "out", 2**30)])

    with pytest.raises(UserError, match="task 'a': found 1073741824 accesses against at most 1073741823"):
        circuit_of(dag, replay_of(schedule(dag, ScheduleOptions(2))))


def test_a_folder_without_circuits_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rtl", str(tmp_path)]) == 1
    assert "printed.json': cannot be read" in capsys.readouterr().err


def test_equal_tasks_are_a_loop_and_large_families_several() -> None:
    dag = cholesky(3, 16)
    made = schedule(dag, ScheduleOptions(4, "sb-rlx", barrier=True))
    circuit = circuit_of(dag, replay_of(made))
    text = str(rtl_files([NamedCircuit("c", circuit, made.makespan_cycles)])["c.sv"])

    assert circuit.tasks == dag.tasks_count
    assert len(circuit.fifos) == made.streamed.sum()
    assert [one.capacity for one in circuit.fifos] != []
    assert len(circuit.blocks) == made.block.max() + 1
    assert text.count("dataflow_tasks #") == len(circuit.families)
    assert Waits((), 0) in circuit.waits


def test_rows_that_grow_evenly_are_one() -> None:
    rows = [((1,), (0, 5)), ((1,), (2, 5)), ((1,), (4, 5)), ((2,), (6, 5)), ((2,), (5, 4))]

    first, second = regular_rows(rows)
    assert (first, first.text(0), first.text(1)) == (RegularRows((1,), (0, 5), (2, 0), 3), "2 * i", "5")
    assert (second.count, second.text(0), second.text(1)) == (2, "6 - i", "5 - i")


def test_names_for_verilog_are_never_taken_twice() -> None:
    taken: set[str] = set()

    assert identifier("a b", taken) == "a_b"
    assert identifier("a.b", taken) == "a_b_2"
    assert identifier("a_b_pull", taken) == "a_b_pull_2"
    assert identifier("3é", taken) == "n3_"
