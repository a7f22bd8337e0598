"""Placing a large graph takes few bytes per node and edge: a million tasks are scheduled in a gigabyte."""

import tracemalloc

from dfcompile.generators.canonical_dags import cholesky
from dfcompile.scheduler.fifo import RELAY_ELEMENTS
from dfcompile.scheduler.gangs import gang_sequence, gangs_of, place_in_order
from dfcompile.scheduler.partitioners.spatial import sb_rlx
from dfcompile.scheduler.timing import streamable_edges

BYTES = 90  # per node and edge; with lists of Python integers for links and tasks they were 120


def test_placing_takes_few_bytes_per_node_and_edge() -> None:
    dag, pes = cholesky(30, 2048, 1), 128
    blocks = sb_rlx.partition(dag, pes)
    gangs = gangs_of(dag, blocks, streamable_edges(dag, blocks.block), RELAY_ELEMENTS)
    sequence = gang_sequence(dag, gangs.gang, blocks.block)
    tracemalloc.start()
    try:
        place_in_order(dag, gangs, pes, sequence)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak <= BYTES * (dag.nodes_count + dag.edges_count), peak / (dag.nodes_count + dag.edges_count)
