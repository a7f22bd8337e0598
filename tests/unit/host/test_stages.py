"""What a run is at is known to who watches it, and to nobody else."""

import time
from collections.abc import Iterator

import pytest

from dfcompile.host import stages
from dfcompile.host.stages import Watch, as_they_come, counted, stage, watched_by, work_of


@pytest.fixture
def begun() -> list[str]:
    return []


@pytest.fixture
def watch(begun: list[str]) -> Iterator[Watch]:
    found = Watch(begun.append)
    with watched_by(found):
        yield found


def test_nobody_watches() -> None:
    with stage("lowering"), work_of(2) as work:
        work.add()

    assert list(counted([1, 2])) == [1, 2]
    assert list(as_they_come(iter("ab"), 2)) == ["a", "b"]


def test_the_innermost_stage_is_named(watch: Watch, begun: list[str]) -> None:
    with stage("outer"):
        with stage("inner"):
            assert watch.title == "inner"
        assert watch.title == "outer"

    assert watch.title == ""
    assert begun == ["outer", "inner"]


def test_a_part_counts_as_far_as_it_is_done(watch: Watch) -> None:
    shares = [watch.share() for _ in counted("ab") for _ in counted("wxyz")]

    assert shares == [0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875]
    assert watch.share() is None


def test_items_count_as_their_weights(watch: Watch) -> None:
    assert [watch.share() for _ in counted([1, 3], float)] == [0.0, 0.25]


def test_a_share_never_becomes_less(watch: Watch) -> None:
    with work_of(2) as whole:
        for _ in as_they_come("ab", 2):
            pass
        with work_of(4) as part:
            part.add(4)
            assert watch.share() == 0.5
        with work_of(4):
            assert watch.share() == 0.5
        whole.add()
        whole.add(7)

        assert watch.share() == 1.0


def test_a_loop_that_is_left_is_forgotten(watch: Watch) -> None:
    with work_of(4) as whole:
        whole.add()
        left = counted("abc")
        assert (next(left), next(left)) == ("a", "b")
        assert watch.share() == pytest.approx(0.25 + 0.25 / 3)

        del left
        assert list(watch.works) == [whole]

    late = counted("abc")
    with work_of(4):
        next(late)
    del late
    assert not watch.works


def test_what_fails_is_forgotten(watch: Watch) -> None:
    with pytest.raises(ValueError, match="failed"), stage("lowering"), work_of(2):
        raise ValueError("failed")

    assert not watch.title
    assert not watch.works


def test_the_time_left_is_in_proportion(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    with work_of(10) as work:
        watch.share()
        assert watch.left_s() is None
        work.add(2)
        now = 130.0
        watch.share()
        assert watch.left_s() == pytest.approx(120.0)
    assert watch.left_s() is None


def test_work_of_unknown_size_says_nothing(watch: Watch) -> None:
    with work_of(0) as work:
        work.add()
        assert watch.share() is None


def test_who_watched_before_watches_again() -> None:
    first: list[str] = []
    second: list[str] = []
    with watched_by(Watch(first.append)):
        with watched_by(Watch(second.append)), stage("inner"):
            pass
        with stage("outer"):
            pass

    assert (first, second) == (["outer"], ["inner"])
    assert stages._WATCH.get() is None


def test_what_is_in_a_part_counts_as_far_as_that_is_large(watch: Watch) -> None:
    shares = []
    with work_of(4) as whole:
        with whole.part(3):
            shares = [watch.share() for _ in counted("abc")]
        shares.append(watch.share())

    assert shares == [0.0, 0.25, 0.5, 0.75]


def test_of_what_says_nothing_as_much_is_likely_done_as_at_the_pace_before(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    shares = []
    with work_of(10) as whole:
        now[0] += 2
        whole.add(2)
        with whole.part(8, is_unseen=True):
            for passed in (0, 4, 4, 8):
                now[0] += passed
                shares.append(watch.share())
            assert watch.left_s() == pytest.approx(18 * 0.04 / 0.96)
        shares.append(watch.share())

    assert shares == pytest.approx([0.2, 0.2 + 0.8 * 0.45, 0.2 + 0.8 * 0.9, 0.2 + 0.8 * 0.95, 1.0])


def test_of_what_says_nothing_at_first_nothing_is_known(watch: Watch) -> None:
    with work_of(2) as whole, whole.part(2, is_unseen=True):
        time.sleep(0.01)
        assert watch.share() == 0.0
