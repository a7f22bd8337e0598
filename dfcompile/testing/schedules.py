"""Checks that canonical DAGs are the same each time, and that schedules of them are accepted."""

from dfcompile.canonical_dag import CanonicalDag, format_dag
from dfcompile.scheduler import ScheduleOptions, check, schedule

PES = (1, 3, 64)
PARTITIONS = ("sb-rlx", "sb-lts")


def check_dag(dag: CanonicalDag, again: CanonicalDag, maker: str) -> None:
    """Check that a canonical DAG is the same a second time, and that the independent checker accepts schedules of it.

    Raises:
        AssertionError: the second one is another.
        VerificationError: a schedule is not accepted.
    """
    assert format_dag(dag) == format_dag(again), f"{maker}: two runs give two canonical DAGs"
    for pes in PES:
        for partition in PARTITIONS:
            check(dag, schedule(dag, ScheduleOptions(pes=pes, partition=partition)))
