"""What families of tasks take and move on a number of processing elements, without looking at single tasks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import inf, prod
from operator import mul

from msgspec import Struct

from dfcompile.canonical_dag.extraction.families import Cut, TaskFamily
from dfcompile.canonical_dag.extraction.flow import ArrayUse, Flow
from dfcompile.canonical_dag.extraction.scopes import Access, LoweredGraph, MapScope
from dfcompile.canonical_dag.extraction.traversal import Loop, reused_elements
from dfcompile.choosing.placing import Family, Placing, Times

_KEPT = 8192  # operands of which it is known how they can be read: some MB
_NO_SCOPE = MapScope("", "", None, (), (), (), ())
_PART = 2  # of SRAM an array may take that stays, one in so many: the rest is for what else is read


class Memory(Struct, frozen=True):
    """The memory of a chip, as far as a choice looks at it.

    Attributes:
        sram_bytes: infinite if it is not limited.
        bytes_per_cycle: of DRAM, in the time of an element; infinite if it is not limited.
    """

    sram_bytes: float
    bytes_per_cycle: float

    def cycles(self, moved: int) -> int:
        """Return the cycles in which DRAM moves so many bytes."""
        return -int(-moved // self.bytes_per_cycle)


class _Way(Struct, frozen=True):
    """A way to read an operand: SRAM that it takes, bytes that it moves."""

    room: int
    moved: int


def traffic(flow: Flow, pes: int, memory: Memory, *, is_streamed: bool = False, is_whole: bool = False) -> int:
    """Return about how many bytes the tasks of a flow move.

    Tasks of a family run in rounds of P. What several of a round read comes once, at least as one stream; what SRAM has
    room for stays for the round, or for all rounds. An array that is made here and is no larger than half of SRAM is
    not moved, one that several families read is then moved once; of arrays in slices the part is moved for which there
    is no room, and of streams from a task to a task, which are as short-lived. Other streams count as if they went
    through memory: of many tasks few run at a time.

    Args:
        flow: families of tasks.
        pes: number of processing elements P.
        memory: of the chip.
        is_streamed: whether a schedule streams at all.
        is_whole: whether the flow is that of a whole model: where it is not, other tasks run at the same time.
    """
    stays = {name for name, use in flow.uses.items() if _stays(flow, use, memory)}
    part_of = moved_slices(flow, pes, memory, is_streamed=is_streamed, is_whole=is_whole)
    stays.update(name for name, part in part_of.items() if not part)
    moved = sum(_size(flow.uses[name]) for name in stays if not flow.uses[name].writers)
    for family in flow.families:
        operands = []
        for access in family.scope.reads:
            if access.array not in stays:
                array = flow.uses[access.array].array
                of_array = array.elements, array.element_bytes
                ways = _operand(family.cuts, (access.strides, access.is_indirect), of_array).ways(pes)
                part = part_of.get(access.array, 1)
                operands.append(tuple(_Way(way.room, int(way.moved * part)) for way in ways))
        moved += _least(operands, memory.sram_bytes)
        for access in family.scope.writes:
            if access.array not in stays:
                written = family.written(access).total * flow.uses[access.array].array.element_bytes
                moved += int(written * part_of.get(access.array, 1))
    return moved


def least_traffic(families: Sequence[TaskFamily], uses: Mapping[str, ArrayUse], pes: int, memory: Memory) -> int:
    """Return what `traffic` is not below, whatever streams and whatever is in slices, of an operator alone.

    Each operand is read in the way of least traffic that SRAM has room for by itself. Of an array that is made here and
    is larger than half of SRAM, tasks that are at work hold their part at least, streams and slices or not.

    Args:
        families: of tasks.
        uses: of their arrays.
        pes: number of processing elements P.
        memory: of the chip.
    """
    moved = 0
    for use in uses.values():
        size, room = _size(use), memory.sram_bytes
        kept, held = 0, 1
        if size * _PART <= room and (_is_made(use) or (not use.writers and len(use.readers) > 1)):
            moved += 0 if use.writers else size
            continue
        if _is_made(use):
            members = max(families[number].members for number, _ in (*use.writers, *use.readers))
            held = max(size * min(pes, members) // members, 1)
            kept = min(int(room), held)
        of_array = use.array.elements, use.array.element_bytes
        for number, access in use.readers:
            ways = _operand(families[number].cuts, (access.strides, access.is_indirect), of_array).ways(pes)
            moved += min(way.moved for way in ways if way.room <= room) * (held - kept) // held
        for number, access in use.writers:
            moved += families[number].written(access).total * use.array.element_bytes * (held - kept) // held
    return moved


def least_bytes(graph: LoweredGraph) -> int:
    """Return the bytes that are moved at least: what is read and not made, and results, once."""
    read = {access.array for scope in graph.scopes for access in scope.reads}
    written = {access.array for scope in graph.scopes for access in scope.writes}
    least: dict[str, int] = {}
    for scope in graph.scopes:
        for access in (*scope.reads, *scope.writes):
            array = graph.arrays[access.array]
            is_moved = access.array not in written if access.array in read else not array.is_transient
            if is_moved:
                touched = TaskFamily(scope, (), is_single=True).taken(access) * array.element_bytes
                least[access.array] = max(least.get(access.array, 0), touched)
    return sum(least.values())


def _stays(flow: Flow, use: ArrayUse, memory: Memory) -> bool:
    """Return whether an array stays on the chip as a whole: one that is made for others, or that several read."""
    is_shared = not use.writers and len(use.readers) > 1
    is_whole = use.array.name not in flow.slices
    return is_whole and (_is_made(use) or is_shared) and _size(use) * _PART <= memory.sram_bytes


def _is_made(use: ArrayUse) -> bool:
    """Return whether an array is made for others, and is no result."""
    return bool(use.writers) and bool(use.readers) and use.array.is_transient


def moved_slices(
    flow: Flow, pes: int, memory: Memory, *, is_streamed: bool = False, is_whole: bool = False
) -> dict[str, Fraction]:
    """Return about which part of each array in slices does not stay on the chip, of those that are made for others.

    Where a schedule streams, what a task hands on to a single task is a slice as well; in a whole model unless all of
    these tasks may run at once.

    Depth first, tasks work on as many slices as P of them touch. Each slice is in memory until the last family has read
    it. SRAM holds what is there on the average, as far as there is room; the rest is moved.
    """
    if memory.sram_bytes == inf:
        return {}
    place = {number: at for at, number in enumerate(flow.order)}
    found, lives = {}, {}
    taken = [0] * len(place)
    counts = {name: slices.count for name, slices in flow.slices.items()}
    if is_streamed:
        counts.update(_handed_on(flow, pes if is_whole else 0))
    for name, count in counts.items():
        use = flow.uses[name]
        if _is_made(use) and not count:
            found[name] = Fraction(0)
        elif _is_made(use):
            begin = min(place[number] for number, _ in use.writers)
            end = max(place[number] for number, _ in use.readers) + 1
            members = max(flow.families[number].members for number, _ in (*use.writers, *use.readers))
            at_once = min(count, -(-pes * count // members))
            lives[name] = begin, end
            for at in range(begin, end):
                taken[at] += _size(use) * at_once // count
    work = [flow.task_cycles[number].total for number in flow.order]
    done = list(accumulate(work, initial=0))
    needed = list(accumulate(map(mul, taken, work), initial=0))
    for name, (begin, end) in lives.items():
        room = int(memory.sram_bytes) * (done[end] - done[begin])
        needs = needed[end] - needed[begin]
        found[name] = max(1 - Fraction(room, needs), Fraction(0)) if needs else Fraction(0)
    return found


def _handed_on(flow: Flow, at_once: int) -> Iterator[tuple[str, int]]:
    """Yield the arrays that tasks stream to single tasks, and how many do; none if so many tasks run at once."""
    for name, use in flow.uses.items():
        families = {number for number, _ in (*use.writers, *use.readers)}
        members = {flow.families[number].members for number in families}
        if not use.is_buffer and len(members) == 1:
            count = max(members)
            yield name, count if len(families) * count > at_once else 0


def _size(use: ArrayUse) -> int:
    return use.array.elements * use.array.element_bytes


class _Operand(Struct, frozen=True):
    """What a family reads of an array, on any number of processing elements.

    Attributes:
        members: tasks of the family.
        everything: bytes of all reads.
        once: bytes of the reads of a task.
        each: bytes of the different elements among them.
        kept: bytes at hand so that a task reads none of these twice.
        array: bytes of the array that are read at most.
        loops: over the tasks; ``None``: places depend on data.
    """

    members: int
    everything: int
    once: int
    each: int
    kept: int
    array: int
    loops: tuple[Loop, ...] | None

    def ways(self, pes: int) -> tuple[_Way, ...]:
        """Return the ways to read it on P elements, of less and less traffic and more and more room."""
        if self.loops is None:
            return (_Way(0, self.everything),)
        rounds, at_once = -(-self.members // pes), _places(self.loops, min(pes, self.members))
        found = [
            _Way(0, min(self.everything, rounds * at_once * self.once)),
            _Way(at_once * self.kept, min(self.everything, rounds * at_once * self.each)),
            _Way(self.array, self.array),
        ]
        return tuple(way for place, way in enumerate(found) if not place or way.moved < found[place - 1].moved)


@lru_cache(_KEPT)
def _operand(cuts: tuple[Cut, ...], moves: tuple[tuple[int, ...], bool], of_array: tuple[int, int]) -> _Operand:
    """Return an operand of a family.

    Args:
        cuts: of the family.
        moves: strides of the access, and whether it is indirect.
        of_array: elements, and bytes of each.
    """
    family, (elements, size), access = TaskFamily(_NO_SCOPE, cuts, is_single=False), of_array, Access("", 0, *moves)
    iterations, members = family.iterations(), family.members
    everything = iterations.total * size
    if access.is_indirect:
        return _Operand(members, everything, 0, 0, 0, 0, None)
    loops = family.over_members(access)
    once = max(iterations.whole, iterations.last) * size
    each = min(once, family.distinct_of_first(access) * size)
    reused = reused_elements(family.member(access).loops)
    kept = each if reused is None else min(reused * size, each)
    array = min(elements * size, prod(loop.extent for loop in loops if loop.stride) * each)
    return _Operand(members, everything, once, each, kept, array, loops)


def _places(loops: Sequence[Loop], members: int) -> int:
    """Return how many different places members that follow one another have, about."""
    places = 1
    for extent, stride in reversed(loops):
        if members <= 1:
            break
        taken = min(extent, members)
        places *= taken if stride else 1
        members = -(-members // extent)
    return places


def _least(operands: Sequence[tuple[_Way, ...]], room: float) -> int:
    """Return what is moved if SRAM is given first to what saves most per byte."""
    chosen = [0] * len(operands)
    while True:
        steps = [
            ((ways[at].moved - way.moved) / max(way.room - ways[at].room, 1), number, place)
            for number, (ways, at) in enumerate(zip(operands, chosen, strict=True))
            for place, way in enumerate(ways[at + 1 :], start=at + 1)
            if way.room - ways[at].room <= room
        ]
        if not steps:
            return sum(ways[at].moved for ways, at in zip(operands, chosen, strict=True))
        _, number, place = max(steps, key=lambda step: (step[0], -step[1], -step[2]))
        room -= operands[number][place].room - operands[number][chosen[number]].room
        chosen[number] = place


class Estimate(Struct, frozen=True):
    """An estimate of the schedule of a flow.

    Attributes:
        cycles: until the last task has ended.
        bound_cycles: what every schedule takes at least: a critical path on which families share all elements.
        work_cycles: of all tasks.
        apart_cycles: of those that wait for slices of arrays alone.
        tasks: their number.
        families: of the tasks, with streams as they are proved.
        memory_cycles: in which DRAM moves what it has to; 0 where memory is not looked at.
    """

    cycles: int
    bound_cycles: int
    work_cycles: int
    tasks: int
    families: tuple[Family, ...] = ()
    memory_cycles: int = 0
    apart_cycles: int = 0

    @property
    def time(self) -> int:
        """Cycles of tasks or of DRAM, whichever are more."""
        return max(self.cycles, self.memory_cycles)

    @property
    def order(self) -> tuple[int, int]:
        """What puts first what takes the least time, and of equals what moves least."""
        return self.time, self.memory_cycles

    @property
    def waits_for_dram(self) -> bool:
        """Whether DRAM takes longer than the tasks."""
        return self.memory_cycles > self.cycles


def families_of(flow: Flow) -> list[Family]:
    """Return the families of a flow as they are placed, on one element."""
    return [Family.of(flow, number, 1) for number in range(len(flow.families))]


def estimate(
    flow: Flow,
    pes: int,
    streams: Callable[[int, int], bool] | None = None,
    memory: Memory | None = None,
    families: Sequence[Family] | None = None,
) -> Estimate:
    """Place families as a list scheduler places tasks: where elements get free, what is most urgent of what can begin.

    A family that takes a stream begins early enough to end with its producer, one past memory after all of it. Where
    streams go from task to task, only the tasks behind the last round of the producer over the elements wait for that.

    Args:
        flow: families, and which of their reads are streams.
        pes: number of processing elements P.
        streams: whether a schedule streams at all, given the number of tasks and the elements of all streams; ``None``:
            it does, and the flow is that of an operator alone.
        memory: of the chip; ``None``: it is not looked at.
        families: `families_of` the flow, if they are known.
    """
    found = families = [each.on(pes) for each in (families_of(flow) if families is None else families)]
    if not families:
        return Estimate(0, 0, 0, 0)
    tasks, total = sum(each.tasks.members for each in families), sum(each.tasks.total for each in families)
    bound = max(-(-total // pes), _longest_path(flow.order, families))
    streamed = sum(each.tasks.total * sum(other.streams for other in each.producers) for each in families)
    is_streamed = streams is None or streams(tasks, streamed)
    if not is_streamed:
        families = [each.through_memory() for each in families]
    placing = Placing(flow.order, families, pes)
    placing.run()
    is_whole = streams is not None
    moved = 0
    if memory is not None:
        moved = memory.cycles(traffic(flow, pes, memory, is_streamed=is_streamed, is_whole=is_whole))
    apart = sum(
        each.tasks.total for each in found if each.producers and all(other.slices > 1 for other in each.producers)
    )
    return Estimate(max(placing.times.end), bound, total, tasks, tuple(found), moved, apart)


def _longest_path(order: Sequence[int], families: Sequence[Family]) -> int:
    """Return what the families take that wait for one another, each of them on all elements.

    Behind slices a family may begin after the first task of the one before, and ends no sooner than a task after it.
    """
    times = Times(len(families))
    for number in order:
        each = families[number]
        whole = [other for other in each.producers if other.streams or other.slices == 1]
        in_slices = [other.number for other in each.producers if not other.streams and other.slices > 1]
        begun = [times.start[other] + families[other].shortest for other in in_slices]
        ends = [times.end[other.number] + 1 for other in whole if other.streams]
        ends += [times.end[other] + each.shortest for other in in_slices]
        begin = max([times.ready(whole, None), *begun])
        times.start[number], times.end[number] = begin, max([begin + each.least, *ends])
    return max(times.end)
