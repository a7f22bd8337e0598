"""The flow of data between families: which arrays are streams, which are buffers, in what order tasks depend.

Where a family writes in the order in which another one reads, one element after the other, an array is a stream.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.analysis import connected, lowest_order
from dfcompile.canonical_dag.dag import Int64
from dfcompile.canonical_dag.extraction.families import Cut, MemberVolumes, TaskFamily
from dfcompile.canonical_dag.extraction.granularity import Granularity
from dfcompile.canonical_dag.extraction.scopes import Access, Array, MapScope
from dfcompile.canonical_dag.extraction.traversal import Traversal, is_round_robin, merged
from dfcompile.errors import UserError
from dfcompile.records import replace


class Slices(Struct, frozen=True):
    """An array in slices that follow one another in memory.

    Attributes:
        count: their number; all are written and read.
        elements: of each, but for the last one, which may have fewer.
    """

    count: int
    elements: int

    def touched(self, family: TaskFamily, access: Access) -> Int64:
        """Return the slice that each task of a family touches, shape [members]."""
        outermost = _outermost(family)
        assert outermost is not None
        each = np.arange(family.members) // (family.members // family.cuts[outermost].tasks)
        step = access.strides[outermost] * family.cuts[outermost].size
        return step * each // self.elements


def slices_of(families: Sequence[TaskFamily], uses: Iterable[tuple[int, Access]]) -> Slices | None:
    """Return in how many slices an array is so that no task touches two of them; ``None``: in one.

    Of each family the outermost loop counts that is divided.

    Args:
        families: of tasks.
        uses: numbers of families, and what each of their tasks touches of the array.
    """
    found: list[tuple[int, int]] = []  # elements that a round of the loop moves by, and how often
    for number, access in uses:
        family = families[number]
        outermost = _outermost(family)
        if outermost is None or access.is_indirect:
            return None
        cut, stride = family.cuts[outermost], access.strides[outermost]
        low, high = (access.base + move for move in _reach(family, access, outermost))
        step = stride * cut.size
        if step <= 0 or low < 0 or high + step - stride >= step:
            return None
        found.append((step, cut.tasks))
    most = max(step for step, _ in found)
    counts = {-(-step * tasks // most) for step, tasks in found}
    if any(most % step for step, _ in found) or len(counts) > 1 or counts == {1}:
        return None
    return Slices(counts.pop(), most)


def _outermost(family: TaskFamily) -> int | None:
    """Return the first loop that is divided; before it there may be loops that are not."""
    return next((at for at, cut in enumerate(family.cuts) if cut.tasks > 1), None)


def _reach(family: TaskFamily, access: Access, outermost: int) -> tuple[int, int]:
    """Return how far below and above its first element tasks go that differ in all loops but one."""
    extents = family.scope.extents
    moves = [stride * (extents[at] - 1) for at, stride in enumerate(access.strides) if at != outermost]
    return sum(min(move, 0) for move in moves), sum(max(move, 0) for move in moves)


Use = tuple[int, Access]  # index of a family, what each of its tasks touches


class Stream(Struct, frozen=True):
    """A write and a read of one array that proved to be in the same order: edges from task to task.

    From one task to every member, from every member to one task, or from member to member, as the families say.
    """

    array: str
    producer: int  # index of the family
    write: Access
    consumer: int
    read: Access


class ArrayUse(Struct, frozen=True):
    """Who writes and who reads an array, and which of the reads are streams."""

    array: Array
    writers: tuple[Use, ...]
    readers: tuple[Use, ...]
    streams: tuple[Stream, ...] = ()

    @property
    def is_buffer(self) -> bool:
        """Whether the array is in memory: because it must, or because somebody reads it from there."""
        return self.array.is_materialised or len(self.streams) < len(self.readers)

    def stream_of(self, consumer: int, read: Access) -> Stream | None:
        """Return the stream behind a read, None if it reads from the buffer."""
        return next((stream for stream in self.streams if (stream.consumer, stream.read) == (consumer, read)), None)

    def without(self, dropped: Iterable[Stream]) -> "ArrayUse":
        """Send all reads of the consumers of some streams through memory."""
        stored = {stream.consumer for stream in dropped}
        return replace(self, streams=tuple(stream for stream in self.streams if stream.consumer not in stored))


class Flow(Struct, frozen=True, dict=True):
    """Families, the order of their dependences, and what happens to each array."""

    families: tuple[TaskFamily, ...]
    order: tuple[int, ...]  # producers before consumers
    uses: Mapping[str, ArrayUse]
    whole_arrays: bool  # a stream carries the size of the whole array instead of what its task moves
    slices: Mapping[str, Slices] = {}  # of arrays in memory that are more than one buffer

    def in_slices(self, granularity: Granularity) -> "Flow":
        """Return the flow with arrays in slices where all scopes that touch them are divided into pieces."""
        divided = [granularity.pieces_of(family.scope.origin) is not None for family in self.families]
        found = {}
        for name, use in self.uses.items():
            stored = [each for each in use.readers if use.stream_of(*each) is None]
            touching = (*use.writers, *stored)
            if use.is_buffer and use.writers and stored and all(divided[number] for number, _ in touching):
                slices = slices_of(self.families, touching)
                if slices is not None:
                    found[name] = slices
        return replace(self, slices=found)

    def stream_volumes(self, stream: Stream) -> MemberVolumes:
        """Return the volume of each edge of a stream, as many as producers or consumers."""
        producer, consumer = self.families[stream.producer], self.families[stream.consumer]
        count = max(producer.members, consumer.members)
        if self.whole_arrays:
            return MemberVolumes.alike(count, self.uses[stream.array].array.elements)
        return producer.written(stream.write).resized(count)

    @cached_property
    def task_cycles(self) -> tuple[MemberVolumes, ...]:
        """The cycles of each task of each family: ``max(I, O)``, whatever feeds it."""
        return tuple(map(self._task_cycles, range(len(self.families))))

    def _task_cycles(self, family: int) -> MemberVolumes:
        tasks = self.families[family]
        iterations = tasks.iterations()
        first = next((self.uses[read.array].stream_of(family, read) for read in tasks.scope.reads), None)
        # All input edges of a task are equal, so the first one tells; a task in turn with a family reads its slice.
        if first is not None:
            iterations = self.stream_volumes(first).resized(tasks.members)
        read = [iterations] if tasks.scope.reads else []
        return MemberVolumes.largest(tasks.members, [*read, *map(tasks.written, tasks.scope.writes)])

    def big_tasks(self, pieces: int) -> tuple[bool, ...]:
        """Return which families do more than one in ``pieces`` of the work of all that stream with them.

        Tasks joined by streams run together; on so many processing elements the largest of them bounds their time if
        it has more than its share. Tasks that are nothing beside the whole graph are not big.
        """
        work = [each.total for each in self.task_cycles]
        total = sum(work)
        ends = [(stream.producer, stream.consumer) for use in self.uses.values() for stream in use.streams]
        component = connected(len(work), *np.array(ends, dtype=np.int64).reshape(-1, 2).T).tolist()
        parts, together = list(zip(component, work, strict=True)), Counter[int]()
        for root, cycles in parts:
            together[root] += cycles
        return tuple(cycles * pieces > together[root] and cycles * pieces**2 > total for root, cycles in parts)


def find_flow(families: Sequence[TaskFamily], arrays: Mapping[str, Array], *, whole_arrays: bool) -> Flow:
    """Decide for every array which reads are streams, so that all tasks are canonical.

    Streams are first proved one by one; then, as long as a task has unequal input or output edges, the streams that
    differ from what the task does with memory become buffers.

    Raises:
        UserError: an array that nobody writes, that is overwritten while it is read, or a task whose results differ
            in size; the message names the scope.
    """
    uses = uses_of(families, arrays)
    for name, use in uses.items():
        if use.readers and not use.writers and use.array.is_transient:
            reader = families[use.readers[0][0]].scope.name
            raise UserError(f"scope {reader!r}: reads {name!r}, which no scope writes, against an array with a writer")
        streams = prove_streams(families, use)
        if streams:
            uses[name] = replace(use, streams=streams)
    order = _dependence_order(families, uses)
    _check_results(families, uses)
    flow = Flow(tuple(families), order, uses, whole_arrays)
    while dropped := _unequal(flow):
        kept = {name: use.without(s for s in dropped if s.array == name) for name, use in flow.uses.items()}
        flow = replace(flow, uses=kept)
    return flow


def uses_of(families: Sequence[TaskFamily], arrays: Mapping[str, Array]) -> dict[str, ArrayUse]:
    """Return who writes and who reads each array, without its streams."""
    writers: dict[str, list[Use]] = {name: [] for name in arrays}
    readers: dict[str, list[Use]] = {name: [] for name in arrays}
    for number, family in enumerate(families):
        for access in family.scope.reads:
            readers[access.array].append((number, access))
        for access in family.scope.writes:
            writers[access.array].append((number, access))
    return {name: ArrayUse(array, tuple(writers[name]), tuple(readers[name])) for name, array in arrays.items()}


def prove_streams(families: Sequence[TaskFamily], use: ArrayUse) -> tuple[Stream, ...]:
    """Return the streams of one array; its other reads go through memory.

    An array with several writers lives in memory. A family that must wait for the stored array for one of its reads
    takes all of them from there: a stream beside it would have to hold the whole array anyway.
    """
    if use.array.is_materialised or len(use.writers) != 1:
        return ()
    producer, write = use.writers[0]
    streams: list[Stream] = []
    for consumer in dict.fromkeys(number for number, _ in use.readers):
        reads = [access for number, access in use.readers if number == consumer]
        if all(can_stream(families[producer], write, families[consumer], read) for read in reads):
            streams.extend(Stream(use.array.name, producer, write, consumer, read) for read in reads)
    return tuple(streams)


def _dependence_order(families: Sequence[TaskFamily], uses: Mapping[str, ArrayUse]) -> tuple[int, ...]:
    """Producers before consumers; otherwise in the order of the SDFG."""
    used = [tuple({number for number, _ in each} for each in (use.writers, use.readers)) for use in uses.values()]
    if all(max(writers) < min(readers) for writers, readers in used if writers and readers):
        return tuple(range(len(families)))
    ends = [(writer, reader) for writers, readers in used for writer in writers for reader in readers]
    order = lowest_order(len(families), *np.array(ends, dtype=np.int64).reshape(-1, 2).T).tolist()
    if len(order) < len(families):
        scope = families[min(set(range(len(families))) - set(order))].scope
        written = dict.fromkeys(repr(access.array) for access in scope.reads if uses[access.array].writers)
        found = f"reads {' or '.join(written)}, which is written again after or while it is read,"
        raise UserError(f"scope {scope.name!r}: {found} against arrays that are complete before they are read")
    return tuple(order)


def _check_results(families: Sequence[TaskFamily], uses: Mapping[str, ArrayUse]) -> None:
    for family in families:
        used = [access for access in family.scope.writes if uses[access.array].readers or uses[access.array].is_buffer]
        for access in used[1:]:
            first, other = family.written(used[0]), family.written(access)
            if first != other:
                found = f"{first.first} elements of {used[0].array!r} and {other.first} of {access.array!r}"
                where = f"scope {family.scope.name!r}"
                raise UserError(f"{where}: a task writes {found} against one number (split the scope)")


def _unequal(flow: Flow) -> list[Stream]:
    """Return streams beside which a family has input edges of other volumes, or output edges.

    They do not carry one element per iteration, or not what a task writes.
    """
    into, out_of = defaultdict[int, list[Stream]](list), defaultdict[int, list[Stream]](list)
    for use in flow.uses.values():
        for stream in use.streams:
            into[stream.consumer].append(stream)
            out_of[stream.producer].append(stream)
    dropped: list[Stream] = []
    for number, streams in into.items():
        family = flow.families[number]
        stored = len(streams) < len(family.scope.reads)
        dropped += _offending(flow, streams, family.iterations(), stored=stored)
    for number, streams in out_of.items():
        family = flow.families[number]
        stored = any(flow.uses[access.array].is_buffer for access in family.scope.writes)
        dropped += _offending(flow, streams, family.written(streams[0].write), stored=stored)
    return dropped


def _offending(flow: Flow, streams: Sequence[Stream], own: MemberVolumes, *, stored: bool) -> list[Stream]:
    """Return the streams that differ from ``own``, unless all edges of each task are equal as they are."""
    volumes = [flow.stream_volumes(stream) for stream in streams]
    edges = [*volumes, own] if stored else volumes
    if own.members == 1:
        equal = all(edge.is_even and edge.whole == edges[0].first for edge in edges)
    else:
        equal = all(edge == edges[0] for edge in edges)
    if equal:
        return []
    return [stream for stream, volume in zip(streams, volumes, strict=True) if volume != own.resized(volume.members)]


_KEPT = 8192  # pairs of a write and a read of which it is known whether they keep one order: some MB
_NO_SCOPE = MapScope("", "", None, (), (), (), ())


def can_stream(producer: TaskFamily, write: Access, consumer: TaskFamily, read: Access) -> bool:
    """Whether every element arrives in the order in which the consumer wants it, each one once.

    * from one task: each consumer reads all that it writes, in the order in which it finishes the elements;
    * from a family to one task: the consumer takes one element of each member in turn;
    * from a family to a family of as many: member to member.
    """
    # Nothing but divided loops and places decides: no names, no other accesses.
    written, wanted = (replace(access, array="") for access in (write, read))
    return _keep_order(producer.cuts, written, consumer.cuts, wanted)


@lru_cache(_KEPT)
def _keep_order(producer_cuts: tuple[Cut, ...], write: Access, consumer_cuts: tuple[Cut, ...], read: Access) -> bool:
    producer = TaskFamily(_NO_SCOPE, producer_cuts, is_single=False)
    consumer = TaskFamily(_NO_SCOPE, consumer_cuts, is_single=False)
    written = producer.member(write).completion
    # An element that two members write is final only when both have ended.
    if written is None or not Traversal(0, (*producer.over_members(write), *written.loops)).is_injective:
        return False
    wanted = consumer.member(read)
    if producer.members > 1 and consumer.members == 1:
        return producer.is_even and is_round_robin(wanted, written, producer.over_members(write))
    if wanted.normal != written or not _agree_on_last(producer, write, consumer, read):
        return False
    if producer.members == 1:
        return all(loop.stride == 0 for loop in merged(consumer.over_members(read)))
    return merged(producer.over_members(write)) == merged(consumer.over_members(read))


def _agree_on_last(producer: TaskFamily, write: Access, consumer: TaskFamily, read: Access) -> bool:
    if producer.is_even and consumer.is_even:
        return True
    written = producer.member(write, last=True).completion
    same_rows = producer.written(write) == consumer.iterations()
    return same_rows and written == consumer.member(read, last=True).normal
