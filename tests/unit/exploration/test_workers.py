"""Workers: the same outcomes in other processes; those that die are started again, but not for ever."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.canonical_dag.extraction.scopes import LoweredGraph
from dfcompile.errors import UserError
from dfcompile.exploration.job import Job, Outcome, run_job
from dfcompile.exploration.workers import InThisProcess, LocalProcesses
from dfcompile.lowering import registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from tests.onnx_text import program_from_text

MARK = "DFCOMPILE_TEST_DEATH"


def graph() -> LoweredGraph:
    program = program_from_text("g (float[6,5] x, float[5,7] w) => (float[6,7] y) { y = MatMul(x, w) }")
    return OutlinedModel(program, registered_expansions()).outline(()).graph


def jobs() -> list[Job]:
    return [Job(graph(), Granularity(), pes, "sb-rlx", (64, 256)) for pes in (1, 2, 3)]


def die_once(job: Job) -> tuple[Outcome, ...]:
    mark = Path(os.environ[MARK])
    if job.pes == 2 and not mark.exists():
        mark.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return run_job(job)


def die(_job: Job) -> tuple[Outcome, ...]:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def test_worker_that_dies_is_started_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(MARK, str(tmp_path / "died"))
    workers = LocalProcesses(2, die_once)
    try:
        found = dict(workers.run(jobs()))
    finally:
        workers.close()

    assert (tmp_path / "died").exists()
    assert found == dict(InThisProcess().run(jobs()))


def test_workers_that_die_again_and_again() -> None:
    workers = LocalProcesses(2, die)
    try:
        with pytest.raises(UserError, match=r"^worker: died 3 times on a lowering of .* on 1 processing elements"):
            list(workers.run(jobs()))
    finally:
        workers.close()


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
