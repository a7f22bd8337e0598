"""PEs that are idle most of the time are said to be, with what most of that time is; more of them would not help."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.report.screen import IDLE, mostly_idle


@given(st.lists(st.integers(0, 100), min_size=5, max_size=5))
def test_it_is_said_where_waiting_is_more_than_work(times: list[int]) -> None:
    parts = dict(zip(("work_s", *IDLE), map(float, times), strict=True))
    said = mostly_idle(parts)

    assert bool(said) is (times[0] < sum(times[1:]))
    assert not said or parts[next(name for name, words in IDLE.items() if words == said)] == max(times[1:])


@pytest.mark.parametrize(("name", "words"), IDLE.items())
def test_each_reason_has_words_of_its_own(name: str, words: str) -> None:
    assert mostly_idle({**dict.fromkeys(IDLE, 1.0), "work_s": 0.0, name: 2.0}) == words
