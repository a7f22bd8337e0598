"""Checks that schedules of a canonical DAG are accepted, whatever it came from."""

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.scheduler import ScheduleOptions, check, schedule

PES = (1, 3, 64)
PARTITIONS = ("sb-rlx", "sb-lts")


def check_schedules(dag: CanonicalDag) -> None:
    """Check that schedules for several numbers of processing elements are accepted by the independent checker.

    Raises:
        VerificationError: one is not.
    """
    for pes in PES:
        for partition in PARTITIONS:
            check(dag, schedule(dag, ScheduleOptions(pes=pes, partition=partition)))
