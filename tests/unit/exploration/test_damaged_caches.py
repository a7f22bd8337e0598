"""Whatever a cache holds, or stands in its place, an exploration ends as it does without it, and says so."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.fuzz.cache_cases import damaged_cache, judge_cache
from tests.fuzz.draw import Draw
from tests.fuzz.outcome import Verdict


@given(st.integers(0, 10**9))
@examples(60)
def test_an_exploration_does_not_depend_on_its_cache(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    draw = Draw(str(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("caches"))
        case = damaged_cache(draw)

        outcome = judge_cache(Path("case.cache"), case, draw, lambda _phase: None)

    assert outcome.verdict is Verdict.ACCEPTED, (outcome.cause, outcome.detail)
