"""Checks for partitioners, ours and those of plug-ins: blocks, schedules, bounds, determinism."""

from collections.abc import Iterable

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.options import Timing
from dfcompile.records import replace
from dfcompile.scheduler import (
    Partitioner,
    ScheduleOptions,
    check,
    lower_bound_cycles,
    registered_partitioners,
    schedule,
)
from dfcompile.scheduler.blocks import Blocks, check_blocks
from dfcompile.testing.models import canonical_dags

PES = (1, 2, 7, 64)


def check_partitioner(
    partitioner: Partitioner | str, dags: Iterable[CanonicalDag] = (), pes: Iterable[int] = PES
) -> None:
    """Check a partitioner on canonical DAGs of the generators, and on others.

    * Invariants: its blocks hold every node once, at most P tasks each, and no edge leads back.
    * Schedules of these blocks, with barriers and without, from mean intervals and element by element, are accepted by
      the independent checker.
    * Bounds: no makespan is below what no schedule can beat.
    * Determinism: a second call gives the same blocks.

    Args:
        partitioner: the value, or its name if it is registered.
        dags: to be taken as well.
        pes: numbers of processing elements P.

    Raises:
        AssertionError: a makespan is below the bound, or two calls differ.
        DfcompileError: there is no such partitioner, it raises, or what it returns is no partition.
    """
    found = registered_partitioners().find(partitioner, "partitioner") if isinstance(partitioner, str) else partitioner
    counts = tuple(pes)
    for dag in (*canonical_dags(), *dags):
        for count in counts:
            for barrier in (True, False):
                blocks, again = (found.blocks(dag, count, barrier=barrier) for _ in range(2))
                check_blocks(dag, blocks, count, overlaps=not barrier and found.overlapping is not None)
                is_same = np.array_equal(blocks.block, again.block) and np.array_equal(blocks.order, again.order)
                assert is_same, f"{found.name}: two calls give two partitions of {dag.name!r} on {count}"
                filled = _filled(blocks, found)
                for timing in Timing:
                    _check_schedule(filled, dag, ScheduleOptions(count, found.name, barrier=barrier, timing=timing))


def _filled(blocks: Blocks, partitioner: Partitioner) -> Partitioner:
    """Return the partitioner with the blocks that it has filled already."""

    def fill(_dag: CanonicalDag, _pes: int) -> Blocks:
        return blocks

    return replace(partitioner, partition=fill, overlapping=None if partitioner.overlapping is None else fill)


def _check_schedule(partitioner: Partitioner, dag: CanonicalDag, options: ScheduleOptions) -> None:
    made = schedule(dag, options, {partitioner.name: partitioner})
    check(dag, made)
    bound = lower_bound_cycles(dag, options.pes)
    where = f"{partitioner.name} of {dag.name!r} on {options.pes}"
    assert made.makespan_cycles >= bound, f"{where}: {made.makespan_cycles} cycles against at least {bound}"
