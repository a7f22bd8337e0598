"""Comparisons: figures that differ, matched by what names them, whatever form the reports have."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.api.compare_reports import ComparisonRun
from dfcompile.errors import UserError
from dfcompile.page.comparison import Change, compare_reports
from dfcompile.page.records import Record
from dfcompile.report.plain_values import Json
from tests.unit.page.reports import HOSTILE, exploration_report, model_report


def record(report: dict[str, Json]) -> Record:
    return Record(copy.deepcopy(report))


def results(report: Record) -> list[Json]:
    found = report.at("results")
    assert isinstance(found, list)
    return found


def part(result: Json, name: str) -> dict[str, Json]:
    assert isinstance(result, dict)
    found = result[name]
    assert isinstance(found, dict)
    return found


WHERE = "results pes=16, expansions=MatMul=mv Conv=im2col, partition=best:"


def test_a_report_is_the_same_as_itself() -> None:
    found = compare_reports([("a", record(model_report())), ("b", record(model_report()))])

    assert found.changes == ()
    assert ComparisonRun(found).text("table", 120).startswith("no difference: all ")


@given(st.integers(1, 10**6), st.permutations(range(4)))
def test_a_figure_is_found_wherever_its_result_stands(makespan: int, order: list[int]) -> None:
    base, other = record(model_report()), record(model_report())
    part(results(other)[0], "schedule")["makespan_cycles"] = makespan
    found = [results(other)[place] for place in order]
    changed = Record({**other.values, "results": found})

    changes = compare_reports([("a", base), ("b", changed)]).changes

    expected = Change("b", f"{WHERE} schedule", "makespan_cycles", 9000, makespan)
    assert changes == ((expected,) if makespan != 9000 else ())
    assert expected.change == pytest.approx(makespan / 9000 - 1)


def test_a_result_that_one_report_has_alone_is_one_line() -> None:
    base, other = record(model_report()), record(model_report())
    fewer = Record({**other.values, "results": results(other)[1:]})

    assert compare_reports([("a", base), ("b", fewer)]).changes == (Change("b", WHERE, "is there", True, None),)
    assert compare_reports([("a", fewer), ("b", base)]).changes == (Change("b", WHERE, "is there", None, True),)


def test_several_reports_are_held_against_the_first() -> None:
    named = [(name, record(model_report())) for name in "abc"]
    for at, (_, report) in enumerate(named):
        part(results(report)[0], "mapping")["cost_usd"] = 100 * at

    found = compare_reports(named)

    assert [(change.report, change.base, change.value, change.change) for change in found.changes] == [
        ("b", 0, 100, None),
        ("c", 0, 200, None),
    ]
    assert found.changes[0].is_headline


def test_reports_of_two_kinds_are_refused() -> None:
    with pytest.raises(UserError, match="report 'b': found a dfcompile-exploration against a dfcompile-report, as 'a'"):
        compare_reports([("a", record(model_report())), ("b", record(exploration_report(1)))])


def test_every_form_says_the_changes_and_obeys_no_name() -> None:
    base, other = record(model_report(HOSTILE[5], HOSTILE[4])), record(model_report(HOSTILE[4], HOSTILE[5]))
    found = compare_reports([("a", base), ("b", other)])

    assert json.loads(ComparisonRun(found).text("json", 120)) == found.record()
    assert ComparisonRun(found).text("csv", 120).count("\n") == len(found.changes) + 1
    for form in ("json", "csv", "table"):
        assert not set("\u202e\u2066\u200b\x00\x1b\x9b") & set(ComparisonRun(found).text(form, 120))


def test_a_changed_choice_is_said_first_then_what_one_asks_for() -> None:
    def report(conv: str, groups: list[Json], makespan: int) -> Record:
        schedule: dict[str, Json] = {"fifo_elements": makespan, "tasks": 9 * makespan**3}
        choice: dict[str, Json] = {"expansions": {"Conv": conv}, "lowerings": groups}
        result: dict[str, Json] = {"pes": 4, "makespan_cycles": makespan, **choice, "schedule": schedule}
        return Record({"format": "dfcompile-report/4", "results": [result]})

    def group(conv: str, *operators: str) -> Json:
        return {"operators": list(operators), "expansions": {"Conv": conv}, "work_cycles": 8}

    base = report("direct", [group("direct", "a", "b")], 10)
    other = report("im2col", [group("im2col", "a", "b")], 30)
    first, blank, title, *rows = (
        ComparisonRun(compare_reports([("A", base), ("B", other)])).text("table", 100).split("\n")
    )

    assert first == "lowering changed, results: Conv direct -> im2col"
    assert (blank, title) == ("", "against A, results and largest changes first")
    figures = [row.split()[1] if "schedule" not in row else row.split()[2] for row in rows[4:7]]
    assert figures == ["makespan_cycles", "fifo_elements", "tasks"]

    left = report("direct+im2col", [group("direct", "a"), group("im2col", "b")], 10)
    right = report("direct+im2col", [group("direct", "b"), group("im2col", "a")], 10)
    told = ComparisonRun(compare_reports([("A", left), ("B", right)])).text("table", 100)
    assert told.startswith("lowering changed, results: the same expansions of other operators\n")
