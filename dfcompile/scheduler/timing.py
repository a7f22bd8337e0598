"""Which edges stream and how fast, and the times of nodes in steady state, in integers that cannot overflow silently.

And which edges lie on cycles: only those can deadlock.
"""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.analysis import connected, on_loops
from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int32, Int64, frozen
from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.distinct import distinct
from dfcompile.errors import UserError
from dfcompile.scheduler.blocks import Blocks

_INT64_MAX = 2**63 - 1


def ceil_ratio(left: Int64, right: Int64, divisor: Int64) -> Int64:
    """Return ``ceil(left * right / divisor)`` element by element; the three columns are not negative.

    The product is formed in int64 where it fits, else in Python integers.

    Raises:
        UserError: a result does not fit in 64 bits.
    """
    if not len(left) or int(left.max()) * int(right.max()) + int(divisor.max()) <= _INT64_MAX:
        rounded: Int64 = (left * right + divisor - 1) // divisor
        return rounded
    wide = [-(-a * b // c) for a, b, c in zip(left.tolist(), right.tolist(), divisor.tolist(), strict=True)]
    return int64_column(wide)


def int64_column(values: list[int]) -> Int64:
    """Return Python integers as a read-only column.

    Raises:
        UserError: a value does not fit in 64 bits.
    """
    fitting(max(values, default=0))
    return frozen(np.array(values, dtype=np.int64))


def fitting(time: int) -> int:
    """Return a time that fits in 64 bits.

    Raises:
        UserError: it does not.
    """
    if time > _INT64_MAX:
        raise UserError(f"schedule: a time of {time} cycles does not fit in 64 bits")
    return time


def streamable_edges(dag: CanonicalDag, block: Int32) -> Bool:
    """Return which edges join two computational nodes of one spatial block, shape [edges].

    An edge between computational nodes exists only where producer and consumer agree on the access order.
    """
    streamable: Bool = dag.between_tasks & (block[dag.edge_source] == block[dag.edge_target])
    return streamable


def peak_volumes(dag: CanonicalDag, streamed: Bool, hardware: Hardware = LITERATURE) -> Int64:
    """Return for each node the largest volume of its streaming component, shape [nodes].

    Along streamed edges interval times volume is one constant per weakly connected component, and the smallest
    feasible constant makes the largest-volume edge run at interval 1: the streaming interval of an edge is
    ``peak / volume`` [dematteis23, theorem 4.1]. A task whose rows take several cycles has as much longer to go.
    """
    component = streamed_components(dag, streamed)
    largest = np.maximum(dag.volume_in, dag.volume_out) + hardware.row_cycles(dag)
    peak = np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(peak, component, largest)
    return peak[component]


def streamed_components(dag: CanonicalDag, streamed: Bool) -> Int64:
    """Return the smallest node of each node's weakly connected component over streamed edges, shape [nodes]."""
    return connected(dag.nodes_count, dag.edge_source[streamed], dag.edge_target[streamed])


class Times(Struct, frozen=True, eq=False):
    """Times of all nodes in cycles, and the streaming intervals behind them.

    Attributes:
        start: ST, shape [nodes].
        first_out: FO, shape [nodes].
        last_out: LO, shape [nodes].
        peak: largest volume of each node's streaming component; the streaming interval of an edge is the exact
            fraction ``peak / volume``, shape [nodes].
    """

    start: Int64
    first_out: Int64
    last_out: Int64
    peak: Int64

    @property
    def makespan_cycles(self) -> int:
        """Return when the last node ends."""
        return int(self.last_out.max()) if len(self.last_out) else 0


def steady_times(dag: CanonicalDag, blocks: Blocks, streamed: Bool, hardware: Hardware = LITERATURE) -> Times:
    """Compute the times of a gang schedule from mean streaming intervals [dematteis23, section 5.2].

    With b the end of the block before (barrier), over the predecessors u of v::

        ST(v) = max(b, FO(u) + hop if (u, v) is streamed else LO(u))
        FO(v) = ST(v) + 1, for a downsampler ST(v) + 1 + ceil(s_i * (ceil(I / O) - 1))
        LO(v) = ST(v) + 1 + ceil(max(s_i * (I - 1), s_o * (O - 1)))

    and an upsampler whose output ends before its input still emits ``ceil(O / I) - 1`` elements after it. FO and LO are
    later by the cycles of the task's pipeline, and of its rows after the first. Buffers and pseudo nodes take no time.

    Args:
        dag: the graph.
        blocks: its spatial blocks.
        streamed: which edges are streamed; none of them may touch a buffer, shape [edges].
        hardware: what FIFOs and tasks take.

    Raises:
        UserError: a time does not fit in 64 bits.
    """
    peak = peak_volumes(dag, streamed, hardware)
    offsets = node_offsets(dag, blocks.block, peak, streamed, hardware)
    times = node_times(dag, blocks.order, offsets, streamed, (dag.in_edges, blocks.block), hardware.hop_cycles)
    start, first_out, last_out = (int64_column(column) for column in times)
    return Times(start, first_out, last_out, peak)


def node_times(
    dag: CanonicalDag,
    order: Int32,
    offsets: tuple[Int64, Int64],
    streamed: Bool,
    waits: tuple[Int32, Int32],
    hop_cycles: int,
) -> tuple[list[int], list[int], list[int]]:
    """Return ST, FO and LO of each node, shape [nodes] each.

    Args:
        dag: the graph.
        order: all nodes, block after block and topologically inside a block, shape [nodes].
        offsets: FO - ST and LO - ST, shape [nodes] each.
        streamed: which edges are streamed, shape [edges].
        waits: numbers of the edges along which nodes wait for one another, by target; and the block of each node, which
            waits for all blocks before it.
        hop_cycles: from the write of an element until it can be read.
    """
    edges, block_of = waits
    parents, is_streamed = dag.edge_source[edges].tolist(), streamed[edges].tolist()
    row = np.searchsorted(dag.edge_target[edges], np.arange(dag.nodes_count + 1)).tolist()
    first_offset, last_offset = offsets[0].tolist(), offsets[1].tolist()
    block, nodes = block_of.tolist(), dag.nodes_count
    start, first_out, last_out = [0] * nodes, [0] * nodes, [0] * nodes
    open_block = barrier = latest = 0
    for node in order.tolist():
        if block[node] != open_block:
            open_block, barrier = block[node], latest
        begin = barrier
        for edge in range(row[node], row[node + 1]):
            parent = parents[edge]
            ready = first_out[parent] + hop_cycles if is_streamed[edge] else last_out[parent]
            if ready > begin:
                begin = ready
        start[node] = begin
        first_out[node] = begin + first_offset[node]
        end = begin + last_offset[node]
        last_out[node] = end
        if end > latest:
            latest = end
    return start, first_out, last_out


def reading_offsets(dag: CanonicalDag, streamed: Bool, hardware: Hardware) -> Int64:
    """Return for each task how long after its start at least it needs its last element, shape [nodes].

    One that does not stream in reads as fast as its outputs allow: read i after ``floor(i * W / I)`` cycles.
    """
    peak, volume_in = peak_volumes(dag, streamed, hardware), np.maximum(dag.volume_in, 1)
    streams_in = np.zeros(dag.nodes_count, dtype=np.bool_)
    streams_in[dag.edge_target[streamed]] = True
    own = dag.work + hardware.row_cycles(dag)
    return np.where(streams_in, peak - peak // volume_in, own + -own // volume_in)


def node_offsets(
    dag: CanonicalDag, block: Int32, peak: Int64, streamed: Bool, hardware: Hardware
) -> tuple[Int64, Int64]:
    """Return FO - ST and LO - ST of each node, shape [nodes] each.

    ``s * (V - 1)`` with ``s = peak / V`` rounds up to ``peak - peak // V``: no product is needed. Elements from
    memory arrive at interval 1, and so leave those for another spatial block; a write to a buffer of the same
    block keeps the pace of the component.
    """
    volume_in, volume_out = np.maximum(dag.volume_in, 1), np.maximum(dag.volume_out, 1)
    streams_in = np.zeros(dag.nodes_count, dtype=np.bool_)
    streams_in[dag.edge_target[streamed]] = True
    paced_out = np.zeros(dag.nodes_count, dtype=np.bool_)
    stored = dag.is_buffer[dag.edge_target] & (block[dag.edge_source] == block[dag.edge_target])
    paced_out[dag.edge_source[streamed | stored]] = True

    rows, going_on = hardware.rows(dag), hardware.row_cycles(dag)
    reading = np.where(streams_in, peak - peak // volume_in + sum(rows), volume_in - 1 + going_on)
    writing = np.where(paced_out, peak - peak // volume_out + sum(rows), volume_out - 1 + going_on)
    last = 1 + np.maximum(reading, writing)
    upsampler = (dag.volume_out > dag.volume_in) & (dag.volume_in > 0)
    last += np.where(upsampler & (writing < reading), (volume_out - 1) // volume_in, 0)

    first = np.ones(dag.nodes_count, dtype=np.int64)
    reducing = np.flatnonzero((dag.volume_in > dag.volume_out) & (dag.volume_out > 0))
    awaited = (volume_in[reducing] - 1) // volume_out[reducing]
    pace = np.where(streams_in, peak, volume_in + going_on)[reducing]
    first[reducing] += ceil_ratio(pace, awaited, volume_in[reducing])
    first = np.where(dag.volume_out == 0, last, np.minimum(first + rows[0], last - (volume_out - 1)))
    pipeline = hardware.pipeline(dag)
    return np.where(dag.is_computational, first + pipeline, 0), np.where(dag.is_computational, last + pipeline, 0)


_UNSEEN = -1


def edges_on_cycles(nodes: int, source: Int32, target: Int32) -> Bool:
    """Return which edges lie on an undirected cycle, shape [edges]; parallel edges form one.

    An edge lies on no cycle exactly if it is a bridge: the depth-first walk finds no way back over it.
    """
    ends = np.concatenate([source, target])
    order = np.argsort(ends, kind="stable")
    starts = np.searchsorted(ends[order], np.arange(nodes + 1)).tolist()
    neighbours = np.concatenate([target, source])[order].tolist()
    edge_ids = np.tile(np.arange(len(source)), 2)[order].tolist()
    seen_at, lowest = [_UNSEEN] * nodes, [0] * nodes
    on_cycle = np.ones(len(source), dtype=np.bool_)
    cursor = starts[:-1]
    clock = 0
    for root in distinct(source).tolist():
        if seen_at[root] != _UNSEEN:
            continue
        seen_at[root] = lowest[root] = clock
        clock += 1
        path = [(root, _UNSEEN)]
        while path:
            node, via = path[-1]
            if cursor[node] == starts[node + 1]:
                path.pop()
                if path:
                    parent = path[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[node])
                    on_cycle[via] = lowest[node] <= seen_at[parent]
                continue
            step = cursor[node]
            cursor[node] += 1
            neighbour, edge = neighbours[step], edge_ids[step]
            if edge == via:
                continue
            if seen_at[neighbour] == _UNSEEN:
                seen_at[neighbour] = lowest[neighbour] = clock
                clock += 1
                path.append((neighbour, edge))
            else:
                lowest[node] = min(lowest[node], seen_at[neighbour])
    return on_cycle


def edges_on_loops(nodes: int, source: Int64, target: Int64) -> Bool:
    """Return which edges are on a directed cycle or on a path between two of them, shape [edges]."""
    on_loop = on_loops(nodes, source, target)
    return on_loop[source] & on_loop[target]
