"""SB-LTS and SB-RLX on graphs whose blocks can be told by hand."""

import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.scheduler.partitioner import Partitioner
from dfcompile.scheduler.partitioners.spatial import sb_lts, sb_rlx
from tests.unit.scheduler.streams import stream_graph


def blocks(partitioner: Partitioner, dag: CanonicalDag, pes: int) -> list[str]:
    """Names of the tasks of each block, in the order in which they were placed."""
    found = partitioner.partition(dag, pes)
    tasks = [node for node in found.order.tolist() if dag.is_computational[node]]
    return [
        " ".join(dag.node_name(node) for node in tasks if found.block[node] == block)
        for block in dict.fromkeys(found.block[tasks].tolist())
    ]


def upsamplers(*works: int) -> CanonicalDag:
    """A source of 10 elements and tasks of more work that read it, in the order of their numbers."""
    readers = [
        edge
        for number, work in enumerate(works)
        for edge in (("a", f"u{number}", 10), (f"u{number}", f"O{number}", work))
    ]
    return stream_graph([("in", "a", 10), *readers])


def test_more_work_than_the_source_opens_a_block_unless_relaxed() -> None:
    dag = upsamplers(40, 20, 30)

    assert blocks(sb_lts, dag, 8) == ["a", "u0 u1 u2"]
    assert blocks(sb_rlx, dag, 8) == ["a u1 u2 u0"]


def test_relaxed_the_least_slowing_tasks_fill_the_block() -> None:
    dag = upsamplers(40, 20, 30, 20)

    assert blocks(sb_rlx, dag, 3) == ["a u1 u3", "u0 u2"]


@pytest.mark.parametrize("partitioner", [sb_lts, sb_rlx], ids=["lts", "rlx"])
def test_of_tasks_that_slow_nothing_the_largest_comes_first(partitioner: Partitioner) -> None:
    """The source of the block has work 10; memory would have none, and everything would slow it."""
    readers = [
        edge for name, out in (("x", 5), ("y", 10), ("z", 2)) for edge in (("b", name, 5), (name, name.upper(), out))
    ]
    dag = stream_graph([("a", "b", 10), *readers])

    assert blocks(partitioner, dag, 4) == ["a b y z", "x"]


def test_a_task_of_the_work_of_its_source_does_not_slow_it() -> None:
    dag = stream_graph([("in", "a", 10), ("a", "b", 10), ("b", "out", 10)])

    assert blocks(sb_lts, dag, 2) == ["a b"]
