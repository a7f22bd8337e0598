"""The shortest streaming schedule of a tiny graph, by trying all."""

from itertools import combinations_with_replacement, pairwise, permutations, product

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.scheduler.simulation import Replay, simulate


def shortest_makespan(dag: CanonicalDag, pes: int, hardware: Hardware = LITERATURE) -> int:
    """Try every assignment of tasks to elements in every order, all edges streamed through FIFOs that are never full.

    Memory never makes a schedule of one assignment and order shorter, nor do smaller FIFOs. But it may where a FIFO
    or a task takes cycles: then every choice of edges that stream is tried, too.
    """
    tasks = np.flatnonzero(dag.is_computational).tolist()
    streamed = dag.is_computational[dag.edge_source] & dag.is_computational[dag.edge_target]
    edges = np.flatnonzero(streamed)
    all_streams = []
    for chosen in product((True, False), repeat=len(edges)) if not hardware.is_literature else [(True,) * len(edges)]:
        some = np.zeros_like(streamed)
        some[edges] = chosen
        all_streams.append(some)
    shortest = 2**62
    for order in permutations(tasks):
        for cuts in combinations_with_replacement(range(len(tasks) + 1), pes - 1):
            rows = [order[first:last] for first, last in pairwise((0, *cuts, len(tasks)))]
            if any(row > after for row, after in pairwise(rows)):
                continue  # elements are alike
            pe, place = np.full(dag.nodes_count, -1, dtype=np.int32), np.zeros(dag.nodes_count, dtype=np.int64)
            for number, row in enumerate(rows):
                pe[list(row)] = number
                place[list(row)] = np.arange(len(row))
            for some in all_streams:
                columns = pe, place, some, np.maximum(dag.edge_volume, 1), np.zeros_like(pe)
                found = simulate(dag, Replay(*columns, hardware=hardware), details=False)
                if not found.deadlock:
                    shortest = min(shortest, found.makespan_cycles)
    return shortest
