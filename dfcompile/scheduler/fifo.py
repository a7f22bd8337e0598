"""How large each FIFO is, whatever the way to its schedule: other files ask here.

| FIFOs asked for | hold |
|---|---|
| `in-flight`, the default of exact times | what is written and not yet read: `in_flight`, `in_flight_apart` |
| the same of list schedules | what their replay held at most: `fifo_room`; of small ones less: `late_sizes` |
| `rule`, the default of steady times | what keeps paths of different latency from a deadlock: `fifo_capacities` |
| `minimal` | the least that keeps the makespan, by search against the simulator: `minimal_fifo_sizes` |
| a number | so many elements |

Whatever is asked for, a FIFO from one gang to another holds all of its stream (`with_relays`), of at most
`relay_elements`; as planned, those of list schedules do, too (`whole_streams`), until a replay says what they need.
Where a FIFO needs more than ``max_fifo``, its edge goes through memory (`next_through_memory`), or it is cut
(`cut_capacities`). Memory has no FIFO: 0. The configurations of a mapping have those of their schedules.
"""

from collections import deque
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int32, Int64, frozen
from dfcompile.canonical_dag.hardware import Hardware
from dfcompile.errors import InfeasibleError, VerificationError
from dfcompile.options import Fifos
from dfcompile.records import replace
from dfcompile.scheduler.options import ScheduleOptions
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.simulation import MakespanProbe, Replay, Simulation, simulate
from dfcompile.scheduler.simulation.replay import reversed_dag, reversed_replay
from dfcompile.scheduler.simulation.simulator import replay_apart
from dfcompile.scheduler.timing import Times, ceil_ratio, edges_on_cycles, edges_on_loops, streamed_components


class _Open(Struct, frozen=True):
    """FIFOs of a group that may still be too large.

    Attributes:
        group: the streamed edges whose FIFOs can stop each other.
        edges: some of them; one alone is bisected.
        too_small: a capacity that is too small for one alone; 0 where even 1 was not tried.
    """

    group: tuple[int, ...]
    edges: tuple[int, ...]
    too_small: int = 0


def minimal_fifo_sizes(
    dag: CanonicalDag, replay: Replay, allowed_cycles: int = 0, most_tries: int | None = None
) -> Int64:
    """Return capacities with which the replay is as fast as with FIFOs that are never full, shape [edges].

    No single one of them can be lowered without a later makespan or a deadlock; another choice may need fewer words in
    all. Smaller FIFOs never make a task earlier, so each edge is searched by bisection within each group that streams
    together; edges that need no more than one element are set aside many at a time. All edges are looked at once
    before any is looked at again, so that a search that ends early has made many of them smaller.

    Args:
        dag: the graph.
        replay: who runs where and what is streamed. The search begins with its capacities where they suffice, so that
            none grows; else with the most that FIFOs of any size would ever hold.
        allowed_cycles: a makespan that is good enough. Without barriers, FIFOs deep enough to let a task run far ahead
            of its consumers free its processing element early: often a few cycles for very many words.
        most_tries: replays in the search; then capacities stay as they are. ``None`` is without limit.

    Returns:
        At least 1 for streamed edges, 0 for the others.

    Raises:
        InfeasibleError: the schedule cannot end whatever the capacities; the message names a wait cycle.
        VerificationError: the replay does not fit the graph.
    """
    free = _without_limits(dag, replay, "fifo sizes")
    limit = max(free.makespan_cycles, allowed_cycles)
    given = simulate(dag, replay)
    begin = free if given.deadlock or given.makespan_cycles > limit else given
    capacity = np.where(replay.streamed, np.maximum(begin.peak, 1), 0)
    probe = MakespanProbe(dag, replace(replay, fifo_capacity=capacity), limit)
    waiting = deque(_Open(group, group) for group in probe.groups)
    tries = 0
    while waiting and (most_tries is None or tries < most_tries):
        waiting.extend(_tried(probe, waiting.popleft(), capacity))
        tries += 1
    sized = simulate(dag, replace(replay, fifo_capacity=capacity))
    if sized.deadlock or sized.makespan_cycles > limit:
        raise VerificationError(f"fifo sizes of {dag.name!r}: makespan {sized.makespan_cycles} against {limit} allowed")
    return frozen(capacity)


def _tried(probe: MakespanProbe, step: _Open, capacity: Int64) -> Iterator[_Open]:
    """Make FIFOs smaller if that delays nothing: all to one element, or one alone halfway; yield what remains open."""
    edges = tuple(edge for edge in step.edges if capacity[edge] > step.too_small + 1)
    if not edges:
        return
    alone = edges[0] if len(edges) == 1 else None
    size = 1 if not step.too_small or alone is None else (step.too_small + int(capacity[alone])) // 2
    if probe.lower(step.group, dict.fromkeys(edges, size)):
        capacity[list(edges)] = size
        if size > 1:
            yield replace(step, edges=edges)
    elif alone is not None:
        yield replace(step, edges=edges, too_small=size)
    else:
        half = len(edges) // 2
        yield _Open(step.group, edges[:half])
        yield _Open(step.group, edges[half:])


LIMIT_ROUNDS = 4  # in which only edges go through memory whose FIFOs need too much; then all that could
RELAY_ELEMENTS = 1024  # a FIFO that holds more is a memory in all but name
_SMALL_ELEMENTS = 2**16  # of streams: half a second
_LARGE = 2**12  # nodes: a replay takes some tenths of a second
_HARDLY_LESS = 100  # one element in so many


def fifos_of(options: ScheduleOptions, *, is_replayed: bool) -> Fifos:
    """Return which FIFOs a schedule has: those asked for, or the default of its times."""
    return options.fifos or ("in-flight" if is_replayed else "rule")


def sizes_asked_for(dag: CanonicalDag, replay: Replay, fifos: Fifos) -> Int64:
    """Return the capacities that are asked for, of a schedule whose FIFOs have those of the rule, shape [edges]."""
    match fifos:
        case "rule":
            return replay.fifo_capacity
        case "in-flight":
            return in_flight(dag, replay)[0]
        case "minimal":
            return minimal_fifo_sizes(dag, replay)
        case _:
            return frozen(np.where(replay.streamed, fifos, 0).astype(np.int64))


def whole_streams(dag: CanonicalDag, streamed: Bool) -> Int64:
    """Return the capacities of FIFOs that are never full, shape [edges]."""
    return fifo_room(streamed, dag.edge_volume)


def fifo_room(streamed: Bool, held: Int64) -> Int64:
    """Return the capacities of FIFOs that hold so many elements and are no larger, 1 at least, shape [edges]."""
    return frozen(np.where(streamed, np.maximum(held, 1), 0))


def late_sizes(dag: CanonicalDag, replay: Replay, free: Simulation) -> tuple[Int64, Simulation] | None:
    """Return the capacities that late accesses need, and a replay with them; ``None`` where that is not of use.

    It is if they are fewer words, the end is no later, and that is soon known.

    Args:
        dag: the graph.
        replay: of the schedule, with the FIFOs that it has.
        free: what it took; its FIFOs were never full.
    """
    if sum(dag.edge_volume[replay.streamed].tolist()) > _SMALL_ELEMENTS:
        return None
    capacity, late = in_flight(dag, replay, free)
    is_less = capacity.sum() < replay.fifo_capacity.sum()
    return (capacity, late) if is_less and late.makespan_cycles <= free.makespan_cycles else None


def with_relays(dag: CanonicalDag, relayed: Bool, inside: Int64) -> Int64:
    """Return the capacities of FIFOs inside gangs, with those from one to another, shape [edges]."""
    return frozen(np.where(relayed, dag.edge_volume, inside))


def with_hops(dag: CanonicalDag, capacity: Int64, hardware: Hardware) -> Int64:
    """Return the capacities of the rule, larger by what is on its way and back at full pace, shape [edges].

    At full pace a place is free again so many cycles after it was taken, and as many elements keep a stream going.
    """
    cycles = hardware.forward(dag) + hardware.hop_cycles
    larger = np.minimum(capacity + np.maximum(cycles - 1, 0), np.maximum(dag.edge_volume, 1))
    return frozen(np.where(capacity > 0, np.maximum(larger, capacity), 0))


def relay_elements(options: ScheduleOptions) -> int:
    """Return how many elements a stream from one gang to another has at most; without demotion, else there is none."""
    return 0 if options.demote else min(RELAY_ELEMENTS, options.max_fifo or RELAY_ELEMENTS)


def is_no_better_than_memory(dag: CanonicalDag, capacity: Int64) -> Bool:
    """Return which edges a FIFO would have to hold whole but for one element: memory does as well."""
    return np.asarray((dag.edge_volume == 1) | (dag.edge_volume - 1 <= capacity))


def without_streams(schedule: Schedule, edges: Bool) -> Schedule:
    """Return a schedule in which some more edges go through memory, at the same times."""
    streamed, capacity = schedule.streamed & ~edges, np.where(edges, 0, schedule.fifo_capacity)
    return replace(schedule, streamed=frozen(streamed), fifo_capacity=frozen(capacity))


def next_through_memory(dag: CanonicalDag, schedule: Schedule, options: ScheduleOptions, round_number: int) -> Bool:
    """Return the edges that go through memory next: those whose FIFOs hold more than ``max_fifo``, shape [edges].

    After some rounds with such FIFOs that is all that could ever be: none needs more than its edge has elements.
    """
    deep = schedule.fifo_capacity > _most(options)
    return dag.edge_volume > _most(options) if round_number >= LIMIT_ROUNDS - 1 and deep.any() else deep


def cut_capacities(schedule: Schedule, options: ScheduleOptions) -> Int64:
    """Return the capacities of a schedule, none of them above ``max_fifo``, shape [edges]."""
    return np.minimum(schedule.fifo_capacity, _most(options))


def _most(options: ScheduleOptions) -> int:
    return options.max_fifo or np.iinfo(np.int64).max


def in_flight(dag: CanonicalDag, replay: Replay, free: Simulation | None = None) -> tuple[Int64, Simulation]:
    """Return capacities with which a replay takes no longer than with FIFOs that are never full, and that replay.

    First all accesses are as early as FIFOs that are never full allow. Then all are put off as long as the end of the
    schedule allows: that is a replay of the reversed graph. The elements that are in flight then, written and not yet
    read, are capacities with which this late schedule is possible; so the earliest schedule with them ends in time as
    well, without a deadlock. Of these capacities what the earliest schedule uses is kept. Where in a large graph they
    are hardly less than what is in flight if all accesses are early, that is taken: it needs no further replay. Bursts
    count as they are: no mean interval is taken.

    Args:
        dag: the graph.
        replay: the schedule, whatever its capacities.
        free: its replay with FIFOs that are never full, if there is one already.

    Raises:
        InfeasibleError: the schedule cannot end whatever the capacities.
        ReplayTooLargeError: the replay is too large.
    """
    if free is None:
        free = _without_limits(dag, replay, "schedule")
    early = replace(replay, fifo_capacity=fifo_room(replay.streamed, free.peak))
    late = simulate(reversed_dag(dag), reversed_replay(early))
    kept = replace(replay, fifo_capacity=fifo_room(replay.streamed, late.peak[::-1]))
    least, most = int(kept.fifo_capacity.sum()), int(early.fifo_capacity.sum())
    if dag.nodes_count > _LARGE and (most - least) * _HARDLY_LESS < most:
        return early.fifo_capacity, free
    found = simulate(dag, kept)
    # With room for what it used, and no more, each access is in the same cycle.
    return fifo_room(replay.streamed, found.peak), found


def _without_limits(dag: CanonicalDag, replay: Replay, asked: str) -> Simulation:
    """Return the replay with FIFOs that are never full."""
    free = simulate(dag, replay.unlimited(dag))
    if free.deadlock:
        links = ", ".join(wait.text(dag) for wait in free.deadlock)
        raise InfeasibleError(f"{asked} of {dag.name!r}: a deadlock with fifos of any size ({links})")
    return free


def in_flight_apart(dag: CanonicalDag, replay: Replay, group: Int32, latest: Int64) -> tuple[Int64, Simulation]:
    """Return such capacities for groups of nodes, each by itself, and the times of the groups with them.

    Here a task may also end in a given cycle of its group, if that is later than it could with FIFOs never full.

    Args:
        dag: the graph.
        replay: what streams; where tasks run does not matter.
        group: of each node; what streams together is of one group, shape [nodes].
        latest: cycle of its group until which each node may run, shape [nodes].
    """
    free = replay_apart(dag, replay.unlimited(dag), group)
    lasting = np.zeros(int(group.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(lasting, group, free.end)
    whole = lasting[group]
    release = whole - np.clip(latest, free.end, whole)
    early = replace(replay, fifo_capacity=fifo_room(replay.streamed, free.peak))
    late = replay_apart(reversed_dag(dag), reversed_replay(early), group, release)
    kept = replace(replay, fifo_capacity=fifo_room(replay.streamed, late.peak[::-1]))
    sized = replay_apart(dag, kept, group)
    return fifo_room(replay.streamed, sized.peak), sized


def fifo_capacities(
    dag: CanonicalDag, block: Int32, streamed: Bool, times: Times, *, off_cycles: bool = False
) -> Int64:
    """Return the capacity of each streamed FIFO in elements, 0 for the other edges, shape [edges].

    A join v cannot fire before its slowest input is there; until then its input (u, v) receives
    ``skew / s(u, v)`` elements, ``skew = max over predecessors t of v in the block of FO(t) - FO(u)``. So much
    room, at least 1 and at most the edge's volume, is given to every streamed edge on an undirected cycle of its
    block; any other FIFO holds 1 [dematteis23, section 6]. With ``off_cycles`` every streamed edge gets its room: else
    a producer off all cycles waits, and stays on its processing element, until its consumer begins.

    A predecessor t that reaches v through memory counts with LO(t). If its end depends on the streaming component
    of v itself, that component must run to its end before v begins: then (u, v) must hold its whole volume.
    """
    source, target = dag.edge_source, dag.edge_target
    inside = block[source] == block[target]
    streams_at = _latest(dag, inside & streamed, times.first_out)
    memory_at = _latest(dag, inside & ~streamed, times.last_out)
    edges = np.flatnonzero(streamed)
    join, emits_at = target[edges], times.first_out[source[edges]]
    skew = np.maximum(streams_at, memory_at)[join] - emits_at
    capacity = np.zeros(dag.edges_count, dtype=np.int64)
    whole = dag.edge_volume[edges]
    capacity[edges] = np.clip(ceil_ratio(np.maximum(skew, 0), whole, times.peak[join]), 1, whole)
    if off_cycles:
        # Of a producer that ends before the join begins all elements wait, whatever their mean interval.
        ended = edges[times.last_out[source[edges]] < np.maximum(streams_at, memory_at)[join]]
        capacity[ended] = dag.edge_volume[ended]
    late = edges[memory_at[join] > emits_at]
    if len(late):
        # Nodes wait for memory that their own streaming component fills first.
        component = streamed_components(dag, streamed)
        memory = np.flatnonzero(inside & ~streamed)
        reader = dag.edge_target[memory]
        on_loop = edges_on_loops(dag.nodes_count, component[dag.edge_source[memory]], component[reader])
        awaits = np.zeros(dag.nodes_count, dtype=np.bool_)
        awaits[reader[on_loop]] = True
        own = late[awaits[target[late]]]
        capacity[own] = dag.edge_volume[own]
    if not off_cycles:
        deep = np.flatnonzero(capacity > 1)
        # Sizes above 1 are rare: only the blocks that have one are searched for cycles.
        capacity[deep[~_on_cycle_of_block(dag, block, inside, deep)]] = 1
    return frozen(capacity)


def _latest(dag: CanonicalDag, edges: Bool, time: Int64) -> Int64:
    """Return the latest time among the sources of the given edges, 0 without any, shape [nodes]."""
    latest = np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(latest, dag.edge_target[edges], time[dag.edge_source[edges]])
    return latest


def _on_cycle_of_block(dag: CanonicalDag, block: Int32, inside: Bool, asked: Int64) -> Bool:
    """Return which of the asked edges lie on an undirected cycle of dependences inside their block.

    Memory that is full before the block begins (a buffer without predecessors in it) makes nobody wait.
    """
    searched = np.zeros(int(block.max()) + 1 if len(block) else 0, dtype=np.bool_)
    searched[block[dag.edge_source[asked]]] = True
    fed = np.zeros(dag.nodes_count, dtype=np.bool_)
    fed[dag.edge_target[inside]] = True
    waits = dag.is_computational | (dag.is_buffer & fed)
    edges = np.flatnonzero(inside & searched[block[dag.edge_source]] & waits[dag.edge_source])
    on_cycle = np.zeros(dag.edges_count, dtype=np.bool_)
    on_cycle[edges] = edges_on_cycles(dag.nodes_count, dag.edge_source[edges], dag.edge_target[edges])
    return on_cycle[asked]
