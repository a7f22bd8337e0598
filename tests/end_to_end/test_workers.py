"""Workers: the same outcomes in other processes; those that die are started again, but not for ever."""

import multiprocessing
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
from tests.end_to_end.unreliable_workers import MARK, die, die_once, tell_and_wait
from tests.onnx_text import program_from_text


def graph() -> LoweredGraph:
    program = program_from_text("g (float[6,5] x, float[5,7] w) => (float[6,7] y) { y = MatMul(x, w) }")
    return OutlinedModel(program, registered_expansions()).outline(()).graph


def jobs() -> list[Job]:
    return [Job(graph(), Granularity(), pes, "sb-rlx", (64, 256)) for pes in (1, 2, 3)]


def wait_for_ever() -> None:
    list(LocalProcesses(2, tell_and_wait).run(jobs()))


def test_worker_that_dies_is_started_again_and_an_interrupt_reaches_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not even one that starts; the very first one if this test is run alone: Python starts a tracker before it."""
    monkeypatch.setenv(MARK, str(tmp_path))
    workers = LocalProcesses(1, die_once)
    try:
        found = dict(workers.run(jobs()))
    finally:
        workers.close()

    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        "died": "SIGINT", "1": "SIGINT", "2": "SIGINT", "3": "SIGINT",
    }  # fmt: skip
    assert found == dict(InThisProcess().run(jobs()))
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_worker_that_dies_before_it_has_a_job_is_started_again() -> None:
    workers = LocalProcesses(1)
    try:
        (worker,) = multiprocessing.active_children()
        worker.kill()
        worker.join()
        assert dict(workers.run(jobs())) == dict(InThisProcess().run(jobs()))
    finally:
        workers.close()


def test_workers_that_die_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dfcompile.exploration.workers._RESTARTS", 1)
    workers = LocalProcesses(1, die)
    try:
        with pytest.raises(UserError, match=r"^worker: died 2 times on a lowering of .* on 1 processing elements"):
            list(workers.run(jobs()))
    finally:
        workers.close()


def test_workers_end_with_the_exploration_that_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(MARK, str(tmp_path))
    code = "from tests.end_to_end.test_workers import wait_for_ever; wait_for_ever()"
    process = subprocess.Popen([sys.executable, "-c", code])
    while len(list(tmp_path.iterdir())) < 2:
        assert process.poll() is None
        time.sleep(0.1)
    process.kill()
    process.wait()

    for worker in tmp_path.iterdir():
        while Path("/proc", worker.name).exists():  # for ever, if it did not end
            time.sleep(0.1)
