"""The audit of schedules, and of the report on those of one graph: every figure from graph and columns.

Of times: nobody waits for nothing, a small schedule takes what a plain replay takes, as do replays. The plain replay
goes element by element: the time of an access follows from those of earlier accesses, in whatever order they are
computed, and no clock runs.
"""

from collections import defaultdict, deque
from collections.abc import Generator, Iterator, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from dfcompile.audit.comparing import audit_derived, expect, expect_at_least, expect_figures, expect_rows
from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int32, Int64
from dfcompile.errors import VerificationError
from dfcompile.options import Timing
from dfcompile.records import replace
from dfcompile.report.figures import Report, ScheduleSummary, SimulationSummary
from dfcompile.scheduler.checked_schedule import CheckedSchedule
from dfcompile.scheduler.schedules import Schedule

MOST_STEPS = 2**15  # cycles and accesses of tasks that stream, about: some hundredths of a second


def plain_times(graph: GraphFigures, schedule: Schedule) -> "PlainReplay | None":
    """Return the replay of a schedule, by its elements, order, blocks and FIFOs alone; ``None``: it is too large."""
    streams = np.flatnonzero(schedule.streamed)
    ends = np.concatenate([graph.dag.edge_source[streams], graph.dag.edge_target[streams]])
    steps = 2 * sum(graph.dag.edge_volume[streams].tolist()) + sum(graph.work[sorted(set(ends.tolist()))].tolist())
    if steps > MOST_STEPS or graph.dag.nodes_count > MOST_STEPS:
        return None
    replay = PlainReplay(graph, schedule)
    replay.run()
    return replay


def _turns(ends: Int32, graph: GraphFigures, schedule: Schedule) -> tuple[Int64, Int64]:
    """Return in which cycle of a row of its task each edge is accessed, and of each node the last of these cycles."""
    by_node = np.argsort(ends, kind="stable")
    place = np.arange(len(ends)) - np.searchsorted(ends[by_node], ends[by_node])
    turn, last = np.zeros(len(ends), dtype=np.int64), np.zeros(graph.dag.nodes_count, dtype=np.int64)
    turn[by_node] = place // (schedule.hardware.ports or max(len(ends), 1))
    np.maximum.at(last, ends, turn)
    return turn, last


def _pipelines(graph: GraphFigures, schedule: Schedule) -> Int64:
    """Return the cycles through the pipeline of each node: those of its kernel's operator, where they are told."""
    dag, hardware = graph.dag, schedule.hardware
    cycles: list[int] = []
    for scope in dag.scopes:
        told = [many for op, many in hardware.pipelines if scope.kernel >= 0 and dag.kernels[scope.kernel].op == op]
        cycles.append((told or [hardware.pipeline_cycles])[0])
    of_scope = np.array(cycles, dtype=np.int64)
    return np.asarray(np.where(graph.is_task, of_scope[dag.node_scope], 0))


Event = tuple[str, int]  # the end of a node, or what was put into a FIFO, or got from it


class PlainReplay:
    """Who has ended and when, and the times of all accesses to FIFOs so far.

    Attributes:
        start: when each task held its first elements, or might run; without an entry it never did.
        end: when each node had ended; without an entry it never did.
        read_stall_cycles: that tasks waited for elements after their starts.
        write_stall_cycles: that tasks waited for places.
    """

    def __init__(self, graph: GraphFigures, schedule: Schedule) -> None:
        self._graph, self._schedule = graph, schedule
        self._capacity: list[int] = schedule.fifo_capacity.tolist()
        self._pipeline: list[int] = _pipelines(graph, schedule).tolist()
        turns = [_turns(ends, graph, schedule) for ends in (graph.dag.edge_target, graph.dag.edge_source)]
        # Of reads and of writes: the turn of each edge in its row, and the last turn of each node.
        self._turn: list[list[int]] = [turn.tolist() for turn, _ in turns]
        self._rows: list[list[int]] = [last.tolist() for _, last in turns]
        self._volumes: list[tuple[int, int]] = list(zip(graph.taken.tolist(), graph.given.tolist(), strict=True))
        self.start: dict[int, int] = {}
        self.end: dict[int, int] = {}
        self.read_stall_cycles = self.write_stall_cycles = 0
        self._put: dict[int, list[int]] = defaultdict(list)
        self._got: dict[int, list[int]] = defaultdict(list)
        self._asleep: dict[Event, list[int]] = {}  # nodes that wait for an event
        self._ready: deque[int] = deque()

    @property
    def makespan_cycles(self) -> int | None:
        """The end of the last node; ``None`` in a deadlock."""
        return max(self.end.values(), default=0) if len(self.end) == self._graph.dag.nodes_count else None

    def run(self) -> None:
        """Let every node go on as far as it gets; with barriers, block by block."""
        nodes = range(self._graph.dag.nodes_count)
        block = self._schedule.block.tolist()
        blocks = sorted(set(block)) if self._schedule.barrier else [None]
        for number in blocks:
            opened = max(self.end.values(), default=0)
            chosen = [node for node in nodes if number is None or block[node] == number]
            lives = {node: self._life(node, opened) for node in chosen}
            self._ready.extend(chosen)
            while self._ready:
                node = self._ready.popleft()
                for event in lives[node]:
                    self._asleep.setdefault(event, []).append(node)
                    break
            if any(node not in self.end for node in chosen):
                return

    def _wake(self, event: Event) -> None:
        self._ready.extend(self._asleep.pop(event, ()))

    @cached_property
    def _awaited(self) -> list[set[int]]:
        """What has to end before each node begins: who writes memory for it, and the task before on its element."""
        dag, schedule = self._graph.dag, self._schedule
        awaited: list[set[int]] = [set() for _ in range(dag.nodes_count)]
        for edge in np.flatnonzero(~schedule.streamed).tolist():
            awaited[int(dag.edge_target[edge])].add(int(dag.edge_source[edge]))
        before: dict[int, int] = {}
        tasks = np.flatnonzero(self._graph.is_task).tolist()
        for task in sorted(tasks, key=lambda task: int(schedule.start[task])):
            element = int(schedule.pe[task])
            if element in before:
                awaited[task].add(before[element])
            before[element] = task
        return awaited

    @cached_property
    def _fifos(self) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """The streams into each task, and those out of it."""
        into: dict[int, list[int]] = defaultdict(list)
        out: dict[int, list[int]] = defaultdict(list)
        for edge in np.flatnonzero(self._schedule.streamed).tolist():
            into[int(self._graph.dag.edge_target[edge])].append(edge)
            out[int(self._graph.dag.edge_source[edge])].append(edge)
        return into, out

    def _life(self, node: int, opened: int) -> Iterator[Event]:
        """Go through the cycles of a node; yields what it waits for."""
        for other in self._awaited[node]:
            while other not in self.end:
                yield "end", other
        begin = max([opened, *(self.end[other] for other in self._awaited[node])])
        self.end[node] = yield from self._accesses(node, begin)
        self._wake(("end", node))

    def _accesses(self, node: int, now: int) -> Generator[Event, None, int]:
        """Go through the accesses of a node from a cycle on; return when it has ended."""
        inputs, outputs = (side.get(node, []) for side in self._fifos)
        taken, given = self._volumes[node]
        if not inputs:
            self.start[node] = now
        if not (inputs or outputs):
            going_on = self._rows[0][node] * taken + self._rows[1][node] * given
            works = max(taken, given) + going_on if self._graph.is_task[node] else 0
            return now + works + self._pipeline[node]
        reads, writes = taken or given, given or taken
        read = written = 0
        while read < reads or written < writes:
            if written < read * writes // reads:
                for edge in outputs:
                    now = (yield from self._write(edge, now + self._turn[1][edge])) - self._turn[1][edge]
                now += self._rows[1][node]
                written += 1
            if read < reads and written == read * writes // reads:
                first = now
                for edge in inputs:
                    now = (yield from self._read(edge, now + self._turn[0][edge])) - self._turn[0][edge]
                if read:
                    self.read_stall_cycles += now - first
                elif inputs:
                    self.start[node] = now
                now += self._rows[0][node]
                read += 1
            now += int(read < reads or written < writes)
        return now + self._pipeline[node]

    def _write(self, edge: int, now: int) -> Generator[Event, None, int]:
        free = len(self._put[edge]) - self._capacity[edge]
        while free >= len(self._got[edge]):
            yield "got", edge
        if free >= 0:
            there = self._got[edge][free] + self._schedule.hardware.hop_cycles
            self.write_stall_cycles += max(there - now, 0)
            now = max(there, now)
        self._put[edge].append(now)
        self._wake(("put", edge))
        return now

    def _read(self, edge: int, now: int) -> Generator[Event, None, int]:
        place = len(self._got[edge])
        while place >= len(self._put[edge]):
            yield "put", edge
        on_its_way = self._pipeline[int(self._graph.dag.edge_source[edge])] + self._schedule.hardware.hop_cycles
        now = max(self._put[edge][place] + on_its_way, now)
        self._got[edge].append(now)
        self._wake(("got", edge))
        return now


def _cycles(schedule: Schedule, graph: GraphFigures) -> Int64:
    """Return what each task takes if it never waits, shape [nodes]: its work, the rest of its rows, its pipeline."""
    reading, writing = (_turns(ends, graph, schedule)[1] for ends in (graph.dag.edge_target, graph.dag.edge_source))
    cycles: Int64 = graph.work + _pipelines(graph, schedule) + graph.taken * reading + graph.given * writing
    return cycles


def audit_times(where: str, schedule: Schedule, graph: GraphFigures) -> None:
    """Compute the times of a schedule that a replay gave anew, as far as that is quick.

    A task without streams into it starts in the cycle in which what it waits for has ended, and takes its work if it
    has no streams at all. All times of a small schedule are those of a plain replay.

    Raises:
        VerificationError: naming the node.
    """
    dag, streamed = graph.dag, schedule.streamed
    takes, gives = np.zeros((2, dag.nodes_count), dtype=np.bool_)
    takes[dag.edge_target[streamed]] = gives[dag.edge_source[streamed]] = True
    awaited = _awaited(schedule, graph)
    alone = graph.is_task & ~takes
    _expect_times(where, "start", np.where(alone, awaited, schedule.start), schedule.start, graph)
    ended = np.where(alone & ~gives, awaited + _cycles(schedule, graph), schedule.last_out)
    ended = np.where(graph.is_task, ended, awaited)
    _expect_times(where, "end", ended, schedule.last_out, graph)
    found = plain_times(graph, schedule)
    if found is not None:
        start = [found.start.get(node, -1) for node in range(dag.nodes_count)]
        end = [found.end.get(node, -1) for node in range(dag.nodes_count)]
        _expect_times(where, "start", np.where(graph.is_task, start, schedule.start), schedule.start, graph)
        _expect_times(where, "end", np.array(end, dtype=np.int64), schedule.last_out, graph)


def audit_simulation(
    where: str, summary: SimulationSummary | None, checked: CheckedSchedule, graph: GraphFigures
) -> None:
    """Compute the figures of a replay anew.

    A replay that ends has the times of an exact schedule, and what a task takes beyond its work it waited.

    Raises:
        VerificationError: naming the figure, or the task whose stalls are not what is left of its time.
    """
    replay = checked.simulation
    if summary is None or replay is None:
        expect(f"{where}: whether there is one", summary is not None, replay is not None)
        return
    ends = replay.end.tolist()
    is_stuck = min(ends, default=0) < 0
    makespan = None if is_stuck else max(ends, default=0)
    read_stall, write_stall = sum(replay.read_stall.tolist()), sum(replay.write_stall.tolist())
    expect_figures(where, summary, makespan_cycles=makespan)
    expect_figures(where, summary, read_stall_cycles=read_stall, write_stall_cycles=write_stall)
    expect(f"{where}.deadlock: whether there is one", bool(summary.deadlock), is_stuck)
    plain = plain_times(graph, checked.schedule)
    if plain is not None:
        expect_figures(where, summary, makespan_cycles=plain.makespan_cycles)
    if is_stuck:
        return
    if plain is not None:
        stalls = plain.read_stall_cycles, plain.write_stall_cycles
        expect_figures(where, summary, read_stall_cycles=stalls[0], write_stall_cycles=stalls[1])
    waited = np.zeros(graph.dag.nodes_count, dtype=np.int64)
    np.add.at(waited, graph.dag.edge_target, replay.read_stall)
    np.add.at(waited, graph.dag.edge_source, replay.write_stall)
    left = replay.end - replay.start - _cycles(checked.schedule, graph) - waited
    if (left[graph.is_task] != 0).any():
        node = int(np.flatnonzero(graph.is_task & (left != 0))[0])
        raise VerificationError(
            f"{where}: node {graph.dag.node_name(node)!r}: found {waited[node]} cycles of stalls "
            f"against {waited[node] + left[node]} beyond its work"
        )
    if checked.schedule.timing is Timing.EXACT:
        expect_figures(where, summary, makespan_cycles=max(checked.schedule.last_out.tolist(), default=0))


def _awaited(schedule: Schedule, graph: GraphFigures) -> Int64:
    """Return when all has ended that each node waits for, but for streams: memory, its element, and blocks before."""
    dag, end, stored = graph.dag, schedule.last_out, ~schedule.streamed
    awaited = np.zeros(dag.nodes_count, dtype=np.int64)
    np.maximum.at(awaited, dag.edge_target[stored], end[dag.edge_source[stored]])
    tasks = np.flatnonzero(graph.is_task)
    tasks = tasks[np.lexsort((schedule.start[tasks], schedule.pe[tasks]))]
    same = schedule.pe[tasks[1:]] == schedule.pe[tasks[:-1]]
    later = tasks[1:][same]
    awaited[later] = np.maximum(awaited[later], end[tasks[:-1][same]])
    if schedule.barrier:
        ends = np.zeros(int(schedule.block.max(initial=0)) + 2, dtype=np.int64)
        np.maximum.at(ends, schedule.block + 1, end)
        awaited = np.maximum(awaited, np.maximum.accumulate(ends)[schedule.block])
    return awaited


def _expect_times(where: str, what: str, expected: Int64, found: Int64, graph: GraphFigures) -> None:
    wrong = np.flatnonzero(expected != found)
    if len(wrong):
        node = int(wrong[0])
        name = graph.dag.node_name(node)
        raise VerificationError(f"{where}: {what} of {name!r}: found {found[node]} against {expected[node]} recomputed")


_BOUND = "lower_bound_cycles"


def audit_schedule(where: str, summary: ScheduleSummary, checked: CheckedSchedule, graph: GraphFigures) -> None:
    """Compute the figures of a schedule anew.

    Args:
        where: path of the part in the report.
        summary: the part.
        checked: the schedule, accepted by the checker, its baseline and its replay.
        graph: what is scheduled.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    schedule, dag = checked.schedule, graph.dag
    is_exact = schedule.timing is Timing.EXACT
    blocks = {block for block, is_task in zip(schedule.block.tolist(), graph.is_task.tolist(), strict=True) if is_task}
    spilled = dag.edge_volume[graph.is_stream & ~schedule.streamed]
    if not checked.ends and (checked.simulation is None or not checked.simulation.deadlock):
        raise VerificationError(f"{where}.makespan_cycles: found a deadlock against a replay that ends")
    makespan = max(schedule.last_out.tolist(), default=0) if checked.ends else None
    if is_exact and makespan is not None:
        audit_times(where, schedule, graph)
    for place, other, found in expect_rows(f"{where}.what_if", summary.what_if, checked.what_if):
        plain = plain_times(graph, replace(schedule, hardware=found.hardware))
        if plain is not None:
            expect_figures(place, other, makespan_cycles=plain.makespan_cycles)
        ratio = None if found.makespan_cycles is None else _ratio(found.makespan_cycles, makespan)
        expect_figures(place, other, makespan_cycles=found.makespan_cycles, ratio=ratio)
        anew_cycles = None
        if found.anew_cycles is not None:
            audit_times(f"{place}.anew", found.anew, graph)
            anew_cycles = max(found.anew.last_out.tolist(), default=0)
        expect_figures(place, other, anew_cycles=anew_cycles)
    speedup = _ratio(graph.total_work_cycles, makespan)
    utilization = None if speedup is None else speedup / schedule.pes
    without_streams = max(checked.baseline.end.tolist(), default=0)
    fifo_elements = sum(schedule.fifo_capacity[schedule.streamed].tolist())
    work, path, depth = graph.total_work_cycles, graph.critical_path_cycles, graph.streaming_depth_cycles
    expect_figures(where, summary, makespan_cycles=makespan, non_streaming_makespan_cycles=without_streams)
    expect_figures(where, summary, total_work_cycles=work, critical_path_cycles=path, streaming_depth_cycles=depth)
    expect_figures(where, summary, io_elements=graph.io_elements, io_bytes=graph.io_bytes)
    expect_figures(where, summary, spilled_elements=sum(spilled.tolist()), fifo_elements=fifo_elements)
    expect_figures(where, summary, barriers=schedule.barrier, blocks=len(blocks), tasks=graph.tasks)
    expect_figures(where, summary, sslr=_ratio(makespan, depth), speedup=speedup, pe_utilization=utilization)
    sample = checked.sample
    error = None if sample is None else Fraction(sample.taken_cycles, sample.planned_cycles) - 1
    expect_figures(where, summary, steady_error=error)
    # No schedule is below the bound; the baseline is one, as nothing has to stream. Steady times may be too short.
    bound, own_bound = summary.lower_bound_cycles, graph.least_makespan_cycles(schedule.pes)
    expect(f"{where}.lower_bound_cycles", bound, checked.figures.lower_bound_cycles)
    expect_at_least(f"{where}.lower_bound_cycles", bound, own_bound, "paths, and work shared by all")
    expect_at_least(f"{where}.non_streaming_makespan_cycles", summary.non_streaming_makespan_cycles, bound, _BOUND)
    if makespan is not None and is_exact:
        expect_at_least(f"{where}.makespan_cycles", makespan, bound, _BOUND)
    expect(f"{where}.gap", summary.gap, gap_above(summary.lower_bound_cycles, makespan, is_exact=is_exact))


def _ratio(dividend: int | None, divisor: int | None) -> Fraction | None:
    """Return a ratio of cycles; ``None`` without one of them, 1 where there are none to divide by."""
    if dividend is None or divisor is None:
        return None
    return Fraction(dividend, divisor) if divisor else Fraction(1)


def gap_above(bound: int, makespan: int | None, *, is_exact: bool) -> Fraction | None:
    """Return a makespan's part above a bound; ``None`` in a deadlock and where a mean makespan is not above it."""
    if makespan is None:
        return None
    gap = Fraction(makespan, bound) - 1 if bound else Fraction(0)
    return None if gap <= 0 and not is_exact else gap


def audit_schedules(report: Report, dag: CanonicalDag, schedules: Sequence[CheckedSchedule]) -> None:
    """Compute every number of a report on schedules of one graph anew.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    audit_derived("report", report)
    expect_figures("model", report.model, nodes=0, nodes_costed=0, nodes_as_tasks=0, nodes_as_views=0, nodes_folded=0)
    graph = GraphFigures(dag)
    for where, result, checked in expect_rows("results", report.results, schedules):
        expect_figures(where, result, pes=checked.schedule.pes, makespan_cycles=result.schedule.makespan_cycles)
        audit_schedule(f"{where}.schedule", result.schedule, checked, graph)
        audit_simulation(f"{where}.simulation", result.simulation, checked, graph)
