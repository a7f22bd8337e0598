"""Workers: the same outcomes in other processes; those that die are started again, but not for ever."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.canonical_dag.extraction.scopes import LoweredGraph
from dfcompile.errors import UserError
from dfcompile.exploration.job import Job
from dfcompile.exploration.workers import InThisProcess, LocalProcesses
from dfcompile.lowering import registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.records import replace
from tests.onnx_text import program_from_text
from tests.unit.exploration.unreliable_workers import MARK, die, die_once, tell_and_wait, tell_what_is_blocked


def graph() -> LoweredGraph:
    program = program_from_text("g (float[6,5] x, float[5,7] w) => (float[6,7] y) { y = MatMul(x, w) }")
    return OutlinedModel(program, registered_expansions()).outline(()).graph


def jobs() -> list[Job]:
    return [Job(graph(), Granularity(), pes, "sb-rlx", (64, 256)) for pes in (1, 2, 3)]


def wait_for_ever() -> None:
    list(LocalProcesses(2, tell_and_wait).run(jobs()))


def test_worker_that_dies_is_started_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(MARK, str(tmp_path / "died"))
    workers = LocalProcesses(1, die_once)
    try:
        found = dict(workers.run(jobs()))
    finally:
        workers.close()

    assert (tmp_path / "died").exists()
    assert found == dict(InThisProcess().run(jobs()))


def test_an_interrupt_reaches_no_worker_not_even_one_that_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(MARK, str(tmp_path))
    workers = LocalProcesses(1, tell_what_is_blocked)
    try:
        list(workers.run(jobs()))
    finally:
        workers.close()

    assert [file.read_text() for file in tmp_path.iterdir()] == ["SIGINT"] * 3
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_workers_that_die_again_and_again() -> None:
    workers = LocalProcesses(1, die)
    try:
        with pytest.raises(UserError, match=r"^worker: died 3 times on a lowering of .* on 1 processing elements"):
            list(workers.run(jobs()))
    finally:
        workers.close()


def test_workers_end_with_the_exploration_that_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(MARK, str(tmp_path))
    code = "from tests.unit.exploration.test_workers import wait_for_ever; wait_for_ever()"
    process = subprocess.Popen([sys.executable, "-c", code])
    while len(list(tmp_path.iterdir())) < 2:
        assert process.poll() is None
        time.sleep(0.1)
    process.kill()
    process.wait()

    for worker in tmp_path.iterdir():
        while Path("/proc", worker.name).exists():  # for ever, if it did not end
            time.sleep(0.1)


def test_address_tells_everything_apart_that_a_result_depends_on() -> None:
    job = jobs()[0]
    other = program_from_text("g (float[6,5] x, float[5,8] w) => (float[6,8] y) { y = MatMul(x, w) }")
    others = [
        replace(job, pes=7),
        replace(job, granularity=Granularity(max_tasks=2)),
        replace(job, partition="sb-lts"),
        replace(job, graph=OutlinedModel(other, registered_expansions()).outline(()).graph),
    ]

    assert len({job.lowering, *(each.lowering for each in others)}) == 5
    assert replace(job, memories=(1,)).lowering == jobs()[0].lowering
    assert job.key(1) != job.key(2)
