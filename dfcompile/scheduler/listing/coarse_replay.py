"""How wrong planned times are where a replay is too large: the same assignment with shorter streams, replayed.

Of every stream one element in so many is left. Rates, order and elements stay, so what bursts and what waits does so in
the same places, and weighs more beside shorter streams.
"""

from collections.abc import Callable

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.records import replace
from dfcompile.scheduler.schedules import Sample, Schedule
from dfcompile.scheduler.simulation import simulate
from dfcompile.scheduler.simulation.simulator import replay_of

_ELEMENTS = 2**22  # of the replay: some tenths of a second


def shortened(dag: CanonicalDag, divisor: int) -> CanonicalDag:
    """Return a graph whose volumes are so many times smaller, rounded up.

    >>> from dfcompile.generators.canonical_dags import chain
    >>> dag = chain(3, 64, 1)
    >>> bool((shortened(dag, 16).edge_volume == -(-dag.edge_volume // 16)).all())
    True
    """
    columns = (dag.volume_in, dag.volume_out, dag.edge_volume, dag.edge_distinct)
    volume_in, volume_out, edge_volume, edge_distinct = (_divided(column, divisor) for column in columns)
    return replace(
        dag, volume_in=volume_in, volume_out=volume_out, edge_volume=edge_volume, edge_distinct=edge_distinct
    )


def coarse_sample(dag: CanonicalDag, planned: Schedule, cycles_of: Callable[[CanonicalDag], int]) -> Sample | None:
    """Return what a schedule with shorter streams takes in a replay, beside its plan; ``None`` without cycles.

    Args:
        dag: the graph.
        planned: its schedule, FIFOs never full.
        cycles_of: plans a graph with shorter streams, everybody in the same place and order.
    """
    divisor = -(-int(dag.edge_volume.sum()) // _ELEMENTS)
    short = shortened(dag, max(divisor, 1))
    cycles = cycles_of(short)
    taken = simulate(short, replay_of(planned).unlimited(short), details=False).makespan_cycles
    return Sample(cycles, taken) if cycles else None


def _divided(column: Int64, divisor: int) -> Int64:
    divided: Int64 = -(-column // divisor)
    divided.setflags(write=False)
    return divided
