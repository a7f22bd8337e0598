"""What is put into SRAM one after another: all that fits, however much there is."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.attained.footprints import Spans
from dfcompile.dfmodel_backend.attained.holding import Room

CYCLES = 12
ROWS = st.lists(st.tuples(st.integers(0, CYCLES - 1), st.integers(1, 6), st.integers(1, 5)), max_size=300)


def spans_of(rows: list[tuple[int, int, int]]) -> Spans:
    begin, length, size = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Spans(begin, np.minimum(begin + length, CYCLES), size)


def one_by_one(room: int, spans: Spans) -> list[bool]:
    """Cycle by cycle, each span put in if there is room for it."""
    left = [room] * CYCLES
    is_in = []
    for begin, end, size in zip(spans.begin, spans.end, spans.size, strict=True):
        is_in.append(min(left[begin:end]) >= size)
        if is_in[-1]:
            left[begin:end] = [has - int(size) for has in left[begin:end]]
    return is_in


@given(ROWS, st.integers(0, 200))
def test_all_is_put_in_that_fits(rows: list[tuple[int, int, int]], room: int) -> None:
    spans, nothing = spans_of(rows), spans_of([])

    is_in = Room(nothing, spans, room).put(spans, np.arange(len(rows)))
    assert is_in.tolist() == one_by_one(room, spans)


@given(ROWS, st.integers(5, 60))
def test_what_leaves_for_it_makes_room(rows: list[tuple[int, int, int]], room: int) -> None:
    """Every third span is in from the start, and leaves for the one behind it."""
    spans, nothing = spans_of(rows), spans_of([])
    known, new = np.arange(0, len(rows), 3), np.arange(1, len(rows), 3)
    kept = Room(nothing, spans, room)
    known = known[kept.put(spans, known)[known]]
    held = [(spans.begin[known] <= cycle) & (cycle < spans.end[known]) for cycle in range(CYCLES)]
    left = [room - int(spans.size[known][which].sum()) for which in held]
    starts = np.searchsorted(known + 1, np.arange(len(rows) + 1))

    is_in = kept.put(spans, new, instead=(spans.take(known), starts))
    for number in new.tolist():
        begin, end, size = (int(column[number]) for column in (spans.begin, spans.end, spans.size))
        after = left.copy()
        if number - 1 in known:
            for cycle in range(int(spans.begin[number - 1]), int(spans.end[number - 1])):
                after[cycle] += int(spans.size[number - 1])
        if is_in[number]:
            left = [has - size * (begin <= cycle < end) for cycle, has in enumerate(after)]
        assert min(left) >= 0


def test_thousands_that_do_not_fit_hide_none_that_do() -> None:
    """Two spans in each cycle, room for one, one behind the other: more refusals than passes over all of them."""
    cycles = np.repeat(np.arange(3000), 2)
    spans = Spans(cycles, cycles + 1, np.ones(6000, dtype=np.int64))

    is_in = Room(Spans(*np.zeros((3, 0), dtype=np.int64)), spans, 1).put(spans, np.arange(6000))
    assert is_in.tolist() == [True, False] * 3000
