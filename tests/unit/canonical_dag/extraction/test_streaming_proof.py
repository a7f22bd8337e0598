"""The streamability proof against a literal replay of both loop nests, element by element."""

from itertools import product

from hypothesis import event, given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.canonical_dag.extraction.families import TaskFamily, divide
from dfcompile.canonical_dag.extraction.flow import can_stream
from dfcompile.canonical_dag.extraction.scopes import Access, MapScope
from dfcompile.canonical_dag.extraction.traversal import Loop, Traversal, is_round_robin, merged, order_text


def visited(traversal: Traversal) -> list[int]:
    """Offsets in the order of the loops."""
    indices = product(*(range(loop.extent) for loop in traversal.loops))
    strides = [loop.stride for loop in traversal.loops]
    return [traversal.base + sum(i * s for i, s in zip(index, strides, strict=True)) for index in indices]


def members(family: TaskFamily, access: Access) -> list[list[int]]:
    """What each task visits, from the iteration space alone."""
    parts: list[list[int]] = []
    for chunk in product(*(range(cut.tasks) for cut in family.cuts)):
        spans = [
            range(at * cut.size, at * cut.size + (cut.last if at == cut.tasks - 1 else cut.size))
            for at, cut in zip(chunk, family.cuts, strict=True)
        ]
        parts.append(
            [access.base + sum(i * s for i, s in zip(index, access.strides, strict=True)) for index in product(*spans)]
        )
    return parts


def final_order(offsets: list[int]) -> list[int]:
    """Elements in the order of their last write."""
    last = {offset: place for place, offset in enumerate(offsets)}
    return sorted(last, key=last.__getitem__)


def really_streams(written: list[list[int]], wanted: list[list[int]]) -> bool:
    if len(written) == 1:
        return all(reader == written[0] for reader in wanted)
    if len(wanted) == 1:
        count = len(written)
        turns = [wanted[0][at : at + count] for at in range(0, len(wanted[0]), count)]
        order = [next((m for m in range(count) if written[m][0] == offset), None) for offset in turns[0]]
        return (
            None not in order
            and len(set(order)) == count
            and all(len(member) == len(turns) for member in written)
            and all(turn == [written[m][at] for m in order if m is not None] for at, turn in enumerate(turns))
        )
    return written == wanted


@st.composite
def nests(draw: st.DrawFn, *, writes: bool) -> TaskFamily:
    """A scope of up to three loops, each perhaps spatial, grouped perhaps, over offsets below about 100."""
    count = draw(st.integers(1, 3))
    extents = tuple(draw(st.lists(st.sampled_from([1, 2, 2, 3, 4]), min_size=count, max_size=count)))
    strides = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 3, 4, 6, 8]), min_size=count, max_size=count)))
    spatial = tuple(draw(st.lists(st.sampled_from([False, False, True]), min_size=count, max_size=count)))
    access = Access("T", draw(st.sampled_from([0, 0, 0, 1])), strides)
    scope = MapScope("f", "f", None, extents, spatial, () if writes else (access,), (access,) if writes else ())
    return divide([scope], Granularity(max_tasks=draw(st.sampled_from([None, None, 2, 3]))))[0]


@given(nests(writes=True), nests(writes=False))
def test_what_is_proved_is_true(producer: TaskFamily, consumer: TaskFamily) -> None:
    write, read = producer.scope.writes[0], consumer.scope.reads[0]
    proved = can_stream(producer, write, consumer, read)
    event(f"proved: {proved}")
    written = [final_order(offsets) for offsets in members(producer, write)]

    if proved:
        assert really_streams(written, members(consumer, read))
        # What two tasks write is final only when both have ended.
        assert len({offset for part in written for offset in part}) == sum(map(len, written))


@st.composite
def dense_pairs(draw: st.DrawFn) -> tuple[TaskFamily, TaskFamily]:
    """A dense array written and read in full by loops in any order, cut in any way, with accumulation inside."""
    shape = draw(st.lists(st.sampled_from([2, 3, 4]), min_size=1, max_size=3))
    dense: list[Loop] = []
    stride = 1
    for extent in reversed(shape):
        dense.insert(0, Loop(extent, stride))
        stride *= extent

    def nest(*, writes: bool) -> TaskFamily:
        loops = draw(st.permutations(dense)) if draw(st.booleans()) else list(dense)
        if draw(st.booleans()):
            loops = list(merged(loops))
        if writes:
            loops = [*loops, *draw(st.sampled_from([(), (Loop(5, 0),), (Loop(5, 0), Loop(3, 0))]))]
        spatial = tuple(draw(st.sampled_from([False, False, True])) and loop.stride > 0 for loop in loops)
        access = Access("T", 0, tuple(loop.stride for loop in loops))
        extents = tuple(loop.extent for loop in loops)
        scope = MapScope("f", "f", None, extents, spatial, () if writes else (access,), (access,) if writes else ())
        return divide([scope])[0]

    return nest(writes=True), nest(writes=False)


@given(dense_pairs())
def test_every_true_order_of_a_dense_array_is_proved(pair: tuple[TaskFamily, TaskFamily]) -> None:
    producer, consumer = pair
    write, read = producer.scope.writes[0], consumer.scope.reads[0]
    written = [final_order(offsets) for offsets in members(producer, write)]
    true = really_streams(written, members(consumer, read))
    event(f"true: {true}, members {min(producer.members, 2)} to {min(consumer.members, 2)}")

    assert can_stream(producer, write, consumer, read) == true


@given(nests(writes=True))
def test_volumes_are_counted_element_by_element(family: TaskFamily) -> None:
    write = family.scope.writes[0]
    parts = members(family, write)

    assert family.iterations().column().tolist() == [len(part) for part in parts]
    assert family.written(write).column().tolist() == [len(set(part)) for part in parts]


loops = st.lists(st.builds(Loop, st.integers(1, 4), st.integers(-3, 12)), max_size=4)


@given(loops, st.integers(0, 5))
def test_normal_form_visits_the_same_offsets_in_the_same_order(nest: list[Loop], base: int) -> None:
    traversal = Traversal(base, tuple(nest))

    assert visited(traversal.normal) == visited(traversal)
    assert traversal.distinct() == len(set(visited(traversal)))
    assert not traversal.is_injective or len(set(visited(traversal))) == traversal.accesses


@st.composite
def pairs_of_nests(draw: st.DrawFn) -> tuple[Traversal, Traversal]:
    """Two nests, the second perhaps the first with loops cut in two: few strides, so that orders are often equal."""
    small = st.lists(st.builds(Loop, st.integers(1, 4), st.sampled_from([0, 1, 2, 3, 4, 6])), max_size=3)
    first = draw(small)
    if draw(st.booleans()):
        return Traversal(0, tuple(first)), Traversal(0, tuple(draw(small)))
    cut = [
        draw(st.sampled_from([part for part in range(1, loop.extent + 1) if loop.extent % part == 0])) for loop in first
    ]
    second = [
        part
        for loop, inner in zip(first, cut, strict=True)
        for part in (Loop(loop.extent // inner, loop.stride * inner), Loop(inner, loop.stride))
    ]
    return Traversal(0, tuple(first)), Traversal(0, tuple(second))


@given(pairs_of_nests())
def test_orders_are_equal_exactly_if_their_normal_forms_are(pair: tuple[Traversal, Traversal]) -> None:
    first, second = pair
    event(f"equal: {first.normal == second.normal}")

    assert (visited(first) == visited(second)) == (first.normal == second.normal)


def test_order_texts() -> None:
    shape, strides = (4, 1, 6, 5), (30, 30, 5, 1)

    def text(*nest: tuple[int, int]) -> str:
        return order_text(Traversal(0, tuple(Loop(*loop) for loop in nest)), shape, strides)

    assert text((4, 30), (6, 5), (5, 1)) == "[0,2,3]"
    assert text((120, 1)) == "[0,2,3]"
    assert text((5, 1), (24, 5)) == "[3,0,2]"
    assert text((6, 5)) == "[2]"
    assert text((4, 30), (3, 5)) == "4@30,3@5"
    assert text((4, 30), (7, 0), (5, 1)) == "4@30,7@0,5@1"
    assert text() == "[]"


def test_members_may_be_counted_by_several_loops() -> None:
    """Six members as two by three, of which a reader takes an element each: offsets 0 to 29 in a row."""
    reader, member = Traversal(0, (Loop(30, 1),)), Traversal(0, (Loop(5, 6),))

    assert is_round_robin(reader, member, [Loop(2, 3), Loop(3, 1)])
    assert is_round_robin(reader, member, [Loop(3, 1), Loop(2, 3)])
    assert not is_round_robin(reader, member, [Loop(2, 4), Loop(3, 1)])
