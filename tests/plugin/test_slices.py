"""The partitioner, on canonical DAGs of dfcompile's generators."""

from dfcompile.scheduler import registered_partitioners
from dfcompile.testing import canonical_dags, check_partitioner


def test_every_schedule_is_accepted() -> None:
    check_partitioner("slices")


def test_blocks_are_full() -> None:
    slices = registered_partitioners().by_name["slices"]
    for dag in canonical_dags():
        assert slices.blocks(dag, 4, barrier=True).count == max(-(-dag.tasks_count // 4), 1)
