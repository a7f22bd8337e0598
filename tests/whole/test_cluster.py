"""Explorations on a Dask cluster: the same outcomes, also if a worker is killed half-way."""

import os
import signal

import pytest
from distributed import Client, LocalCluster

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.errors import UserError
from dfcompile.exploration.job import Job
from dfcompile.exploration.workers import DaskCluster, InThisProcess, run_if_same_sources
from dfcompile.lowering import registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from tests.onnx_text import program_from_text


def jobs() -> list[Job]:
    program = program_from_text("g (float[40,50] x, float[50,60] w) => (float[40,60] y) { y = MatMul(x, w) }")
    graph = OutlinedModel(program, registered_expansions()).outline(()).graph
    return [Job(graph, Granularity(), pes, "sb-rlx", (64, 4096)) for pes in range(1, 25)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_worker_killed_half_way_loses_nothing() -> None:
    expected = dict(InThisProcess().run(jobs()))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local:
        workers = DaskCluster(local.scheduler_address)
        with Client(local.scheduler_address, set_as_default=False) as client:
            victim = min(client.run(os.getpid).values())
        found = {}
        for number, outcomes in workers.run(jobs()):
            found[number] = outcomes
            if len(found) == 8:
                os.kill(victim, signal.SIGKILL)
        workers.close()

    assert found == expected


def test_cluster_that_does_not_answer() -> None:
    with pytest.raises(UserError, match=r"^--cluster tcp://127.0.0.1:1: does not answer"):
        DaskCluster("tcp://127.0.0.1:1", patience_s=1)


def test_worker_with_other_sources_is_refused() -> None:
    job = jobs()[0]

    assert run_if_same_sources(job, job.lowering) == dict(InThisProcess().run([job]))[0]
    with pytest.raises(UserError, match="other sources of dfcompile"):
        run_if_same_sources(job, "0" * 64)
