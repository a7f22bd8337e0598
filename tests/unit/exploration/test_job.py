"""A job: what its result depends on is in its address."""

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.canonical_dag.extraction.scopes import LoweredGraph
from dfcompile.exploration.job import Job
from dfcompile.lowering import registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.records import replace
from tests.onnx_text import program_from_text


def graph(columns: int) -> LoweredGraph:
    """Return a product with so many columns."""
    text = f"g (float[6,5] x, float[5,{columns}] w) => (float[6,{columns}] y) {{ y = MatMul(x, w) }}"
    return OutlinedModel(program_from_text(text), registered_expansions()).outline(()).graph


def test_address_tells_everything_apart_that_a_result_depends_on() -> None:
    job = Job(graph(7), Granularity(), 1, "sb-rlx", (64, 256))
    others = [
        replace(job, pes=7),
        replace(job, granularity=Granularity(max_tasks=2)),
        replace(job, partition="sb-lts"),
        replace(job, graph=graph(8)),
    ]

    assert len({job.lowering, *(each.lowering for each in others)}) == 5
    assert replace(job, graph=graph(7), memories=(1,)).lowering == job.lowering
    assert len(set(replace(job, memories=(1, 2)).keys)) == 2
