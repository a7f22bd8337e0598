"""Schedules of parts: which are made, and which only taken where they are known."""

from collections.abc import Iterable, Mapping

import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.dfmodel_backend.attained import part_schedules
from dfcompile.dfmodel_backend.attained.part_schedules import PartSchedules
from dfcompile.errors import ReplayTooLargeError
from dfcompile.generators.canonical_dags import cholesky
from dfcompile.scheduler import Partitioner, Schedule, ScheduleOptions, schedule
from dfcompile.scheduler.simulation.simulator import replayed

DAG = cholesky(3, 16, 1)
ASKED, PLANNED = ScheduleOptions(2, "sb-lts"), ScheduleOptions(2, "sb-rlx")


def names_of(
    monkeypatch: pytest.MonkeyPatch,
    most_nodes: int = DAG.nodes_count,
    few_nodes: int = 0,
    *,
    only: str = "",
    fits_known: bool = False,
    may_help: bool = True,
) -> list[str]:
    """Return how the schedules of a part were made whose schedule is known, and fits only if it is said."""
    monkeypatch.setattr(part_schedules, "_SCHEDULED_BOTH_WAYS", few_nodes)
    monkeypatch.setattr(part_schedules, "_REPLAYED_BOTH_WAYS", most_nodes)
    schedules = PartSchedules(ASKED, PLANNED)
    known = replayed(DAG, schedule(DAG, ASKED))
    schedules.put(DAG, known)

    def fits(found: Schedule) -> bool:
        return (found is not known or fits_known) if not only else found.partition == only

    return named(schedules.of(DAG, fits).replayed(lambda _: may_help))


def named(found: Iterable[Schedule]) -> list[str]:
    """Return the partitioners of schedules, without the one in which nothing streams."""
    return [each.partition for each in found if each.streamed.any()]


def test_a_small_part_is_scheduled_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_of(monkeypatch) == ["sb-rlx", "sb-lts"]


def test_a_second_way_that_does_not_help_is_looked_for_only_of_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_of(monkeypatch, may_help=False) == ["sb-rlx"]
    assert names_of(monkeypatch, few_nodes=DAG.nodes_count, may_help=False) == ["sb-rlx", "sb-lts"]


def test_of_all_but_small_parts_what_is_known_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_of(monkeypatch, fits_known=True) == ["sb-lts", "sb-rlx"]
    assert names_of(monkeypatch, fits_known=True, may_help=False) == ["sb-lts"]
    assert names_of(monkeypatch, few_nodes=DAG.nodes_count, fits_known=True) == ["sb-rlx", "sb-lts"]


@pytest.mark.parametrize("is_planned", [True, False])
def test_of_large_parts_beside_what_is_known_only_what_is_planned_comes(
    is_planned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_schedules, "_SCHEDULED_BOTH_WAYS", 0)
    monkeypatch.setattr(part_schedules, "_REPLAYED_BOTH_WAYS", 0)
    schedules = PartSchedules(ASKED, PLANNED)
    schedules.put(DAG, replayed(DAG, schedule(DAG, ASKED)))
    if is_planned:
        assert len(list(schedules.of(DAG, lambda _: True).planned())) == 2

    found = named(schedules.of(DAG, lambda _: True).replayed())

    assert found == ["sb-lts", *["sb-rlx"] * is_planned]


def test_a_large_part_whose_known_schedule_does_not_fit_is_not_scheduled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_of(monkeypatch, DAG.nodes_count - 1) == ["sb-rlx"]


def test_the_known_schedule_of_a_large_part_is_yielded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_of(monkeypatch, DAG.nodes_count - 1, only="sb-lts") == ["sb-lts"]


def names_of_replayable(monkeypatch: pytest.MonkeyPatch, too_large: set[str]) -> list[str]:
    """Return how the schedules of a part were made where replays of some are too large."""

    def limited(dag: CanonicalDag, found: Schedule) -> Schedule:
        if found.partition in too_large:
            raise ReplayTooLargeError(f"simulation of {found.partition}")
        return replayed(dag, found)

    monkeypatch.setattr(part_schedules, "replayed", limited)
    return named(PartSchedules(ASKED, PLANNED).of(DAG, lambda _: True).replayed())


def test_what_is_too_large_for_a_replay_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_of_replayable(monkeypatch, {"sb-rlx"}) == ["sb-lts"]


def test_where_everything_is_too_large_for_a_replay_nothing_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_of_replayable(monkeypatch, {"sb-rlx", "sb-lts"}) == []


def test_what_fits_as_planned_and_not_as_replayed_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other FIFOs may be there at a time."""
    replays: list[Schedule] = []

    def noted(dag: CanonicalDag, found: Schedule) -> Schedule:
        replays.append(replayed(dag, found))
        return replays[-1]

    monkeypatch.setattr(part_schedules, "replayed", noted)
    found = PartSchedules(ASKED, PLANNED).of(DAG, lambda each: all(each is not timed for timed in replays)).replayed()

    assert named(found) == []
    assert replays


def test_on_fewer_elements_fifos_of_one_element_are_tried_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """They leave most room for data."""
    tried = set[tuple[int, int | None]]()

    def noted(dag: CanonicalDag, options: ScheduleOptions, table: Mapping[str, Partitioner]) -> Schedule:
        tried.add((options.pes, options.max_fifo))
        return schedule(dag, options, table)

    monkeypatch.setattr(part_schedules, "schedule", noted)
    options = ScheduleOptions(4, "sb-rlx")
    found = list(PartSchedules(options, options).of(DAG, lambda _: True).on_fewer_elements(lambda _: True))

    assert tried == {(pes, most) for pes in (3, 2, 1) for most in (None, 1)}
    assert {each.pes for each in found} == {options.pes}  # the others idle
