"""Canonical DAGs for tests of plug-ins: those of the generators, with volumes at random; and checks of any."""

from collections.abc import Iterator

from dfcompile.canonical_dag import CanonicalDag, format_dag
from dfcompile.generators.canonical_dags import chain, cholesky, fft, fork_join, gaussian
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


FIRST_VOLUME = 64  # elements on the first edges
SEEDS = 3


def canonical_dags(seeds: int = SEEDS) -> Iterator[CanonicalDag]:
    """Yield small canonical DAGs: chains, trees, forks and joins, of equal volumes and of volumes at random.

    Args:
        seeds: how many times each is drawn with other volumes.
    """
    for seed in (None, *range(seeds)):
        yield chain(1, FIRST_VOLUME, seed)
        yield chain(9, FIRST_VOLUME, seed)
        yield fft(8, FIRST_VOLUME, seed)
        yield gaussian(5, FIRST_VOLUME, seed)
        yield cholesky(4, FIRST_VOLUME, seed)
        yield fork_join(3, 5, FIRST_VOLUME, seed)
