"""A figure is said once: JSON, schema, CSV, tables and documents follow."""

from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from fractions import Fraction

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import InternalError
from dfcompile.report.columns import Derived, table_columns
from dfcompile.report.design.figures import DesignReport, design_schema
from dfcompile.report.figure import fields_of, figure, record
from dfcompile.report.figures import Report, report_schema
from dfcompile.report.plain_values import Json, rows_of, schema_of, to_record
from dfcompile.report.text_tables import Column
from tests.field_table import field_table, records_in
from tests.report_schemas import validate
from tests.sample_reports import sample_reports

# What a contributor writes to have a figure in the report, and no more: one class, or one more line in one.


@record("waits")
class Waiting:
    idle_cycles: int = figure("that no PE works ([how](scheduling.md))", heading="idle\ncycles")
    longest_s: float = figure("of one `PE`", heading="longest\n{}s", after="share")
    share: Fraction = figure("of all", heading="share\n%", table=("waits", "other"), cell=".1%")
    who: str = figure("waits most", heading="who", words=(("", "nobody"),))
    blocks: int = figure("that wait", heading="blocks", hidden=1)
    names: tuple[str, ...] = figure("of all that wait")


@record()
class Outcome:
    pes: int = figure("on the machine", unit="PEs", least=1)
    idle_cycles: int = figure("of the model")
    waiting: Waiting | None = figure("only if anybody waits", prefix="waited", default=None)


@record()
class Outcomes:
    kind: str = figure("always the same", choices=("outcomes/1",), default="outcomes/1", init=False)
    outcomes: tuple[Outcome, ...] = figure("one per machine", least=1)


WAITING = Waiting(1200, 0.0025, Fraction(1, 3), "", 1, ("a", "b"))
OUTCOMES = Outcomes((Outcome(16, 7, WAITING), Outcome(128, 9)))


def test_json_has_it_rounded() -> None:
    assert to_record(OUTCOMES) == {
        "kind": "outcomes/1",
        "outcomes": [
            {
                "pes": 16,
                "idle_cycles": 7,
                "waiting": {
                    "idle_cycles": 1200,
                    "longest_s": 0.0025,
                    "share": 0.333333333333,
                    "who": "",
                    "blocks": 1,
                    "names": ["a", "b"],
                },
            },
            {"pes": 128, "idle_cycles": 9},
        ],
    }


def test_schema_has_it_with_its_meaning() -> None:
    schema = schema_of(Outcomes, "outcomes/1")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(to_record(OUTCOMES), schema)
    waiting = property_of(property_of(schema, "outcomes"), "waiting")

    assert property_of(waiting, "idle_cycles") == {
        "type": "integer",
        "minimum": 0,
        "description": "that no PE works (how)",
    }
    assert property_of(waiting, "longest_s") == {"type": "number", "minimum": 0, "description": "of one PE"}
    assert property_of(schema, "kind") == {"const": "outcomes/1", "description": "always the same"}
    assert waiting["required"] == ["idle_cycles", "longest_s", "share", "who", "blocks", "names"]
    assert isinstance(schema["properties"], dict)
    with pytest.raises(jsonschema.ValidationError, match="should be non-empty"):
        jsonschema.validate({"kind": "outcomes/1", "outcomes": []}, schema)


def property_of(schema: dict[str, Json], name: str) -> dict[str, Json]:
    holder = schema["items"] if schema["type"] == "array" else schema
    assert isinstance(holder, dict)
    properties = holder["properties"]
    assert isinstance(properties, dict)
    found = properties[name]
    assert isinstance(found, dict)
    return found


def test_csv_has_it_and_tells_equal_names_apart() -> None:
    assert rows_of(OUTCOMES.outcomes) == [
        {
            "pes": 16,
            "idle_cycles": 7,
            "waited_idle_cycles": 1200,
            "longest_s": 0.0025,
            "share": 0.333333333333,
            "who": "",
            "blocks": 1,
        },
        {
            "pes": 128,
            "idle_cycles": 9,
            "waited_idle_cycles": None,
            "longest_s": None,
            "share": None,
            "who": None,
            "blocks": None,
        },
    ]
    assert rows_of(OUTCOMES.outcomes[1:]) == [{"pes": 128, "idle_cycles": 9}]


def test_tables_have_its_column_where_it_says() -> None:
    def twice(outcome: Outcome) -> str:
        return str(2 * outcome.idle_cycles)

    columns = table_columns("waits", OUTCOMES.outcomes, [Derived("twice", twice, after="waiting.idle_cycles")])

    assert columns == (
        Column("idle\ncycles", ("1,200", "-")),
        Column("twice", ("14", "18")),
        Column("share\n%", ("33.3", "-")),
        Column("longest\nms", ("2.500", "-")),
        Column("who", ("nobody", "-"), is_text=True),
        Column("blocks", ("1", "-")),
    )
    hidden = table_columns("waits", OUTCOMES.outcomes[:1])
    assert "blocks" not in [column.heading for column in hidden]
    assert [column.heading for column in table_columns("other", OUTCOMES.outcomes)] == ["share\n%"]
    assert table_columns("waits", OUTCOMES.outcomes[1:]) == ()


def test_documents_have_its_line() -> None:
    assert field_table(Waiting).splitlines()[2:5] == [
        "| `idle_cycles` | cycles | that no PE works ([how](scheduling.md)) |",
        "| `longest_s` | s | of one `PE` |",
        "| `share` | | of all |",
    ]
    assert list(records_in(Outcomes)) == ["", "outcomes[]", "outcomes[].waiting"]


def test_a_column_that_follows_nothing_is_a_bug() -> None:
    with pytest.raises(InternalError, match=r"found no column 'waiting\.made_up' to follow"):
        table_columns("waits", OUTCOMES.outcomes, [Derived("lost", str, after="waiting.made_up")])


def test_a_field_that_says_nothing_of_itself_is_a_bug() -> None:
    @dataclass(frozen=True, slots=True)
    class Silent:
        blocks: int

    with pytest.raises(InternalError, match=r"Silent\.blocks: found no figure\(\) against one"):
        fields_of(Silent)


@given(st.integers(0, 10**15), st.floats(0, 1e15), st.text())
def test_every_value_follows_the_schema(count: int, seconds: float, who: str) -> None:
    validate(to_record(Waiting(count, seconds, Fraction(count, 7), who, count, (who,))), waiting_schema)


def waiting_schema() -> dict[str, Json]:
    return schema_of(Waiting, "waiting")


@pytest.mark.parametrize("report", sample_reports(), ids=["dag", "model", "design"])
def test_every_shape_of_report_follows_its_schema(report: Report | DesignReport) -> None:
    validate(to_record(report), report_schema if isinstance(report, Report) else design_schema)


def test_every_figure_of_the_reports_says_what_it_means() -> None:
    silent = [
        f"{kind.__name__}.{field.name}" for kind in records() for field in fields_of(kind) if not field.figure.meaning
    ]
    unshown = [
        f"{kind.__name__}.{field.name}"
        for kind in records()
        for field in fields_of(kind)
        if bool(field.figure.tables) is not bool(field.figure.heading)
    ]

    assert (silent, unshown) == ([], [])
    assert all(is_dataclass(kind) for kind in records())


def records() -> Iterator[type]:
    for report in (Report, DesignReport):
        yield from records_in(report).values()
