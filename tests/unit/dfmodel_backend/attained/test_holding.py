"""What SRAM holds where it has no room for all: the best of some orders in which data is put in."""

import numpy as np
import pytest

from dfcompile.dfmodel_backend.attained import holding
from dfcompile.dfmodel_backend.attained.footprints import Fetches, Spans
from dfcompile.dfmodel_backend.attained.holding import Wholes, hold

SIZE, SAVES = np.array([16, 4]), np.array([32, 8])  # bytes of two arrays, and what is not moved if they are held
BEGIN, END = np.array([0, 4]), np.array([12, 6])  # cycles in which they are read


def fetched() -> tuple[Wholes, Fetches]:
    """Return two arrays that several tasks read at about the same time, each in an order of its own."""
    nothing, number = np.zeros(2, np.int64), np.arange(2)
    wholes = Wholes(Spans(BEGIN, END, SIZE), np.ones(2, np.bool_), SIZE, nothing)
    columns = {"of_read": number, "footprint": number, "keeper": number, "begin": BEGIN, "end": END}
    sizes = {"size": SIZE + SAVES, "distinct": SIZE, "once": SIZE, "window": nothing, "rolling": SIZE}
    return wholes, Fetches(**columns, **sizes)


def moved(room: int) -> int:
    nothing = np.zeros(0, np.int64)
    return hold(*fetched(), Spans(nothing, nothing, nothing), room).moved


def test_both_are_read_once_where_there_is_room() -> None:
    assert moved(20) == SIZE.sum()


def test_a_small_array_that_saves_most_per_byte_and_cycle_leaves_the_place_to_a_large_one_that_saves_more() -> None:
    assert moved(16) == SIZE.sum() + SAVES[1]


def test_the_small_one_is_held_where_the_large_one_has_no_room() -> None:
    assert moved(15) == SIZE.sum() + SAVES[0]


def test_nothing_is_held_without_room() -> None:
    assert moved(3) == (SIZE + SAVES).sum()


def test_of_very_much_small_things_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding, "_LARGEST_FIRST", 1)

    assert moved(16) == SIZE.sum() + SAVES[0]
