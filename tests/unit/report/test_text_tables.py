"""Tables cut no name and no number, at any width."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.cli.listings import expansions_listing, ops_listing, systems_listing
from dfcompile.expansion_names import told_names
from dfcompile.lowering import registered_expansions
from dfcompile.report.text_tables import Column, Table, columns_of, folded, listing_lines

WIDTHS = (40, 60, 80, 120)
names = st.from_regex(r"[a-z_.]{1,50}", fullmatch=True) | st.sampled_from(["卷积.matmul", "слой", "a" * 70])
texts = st.lists(names, min_size=1, max_size=4).map(" ".join)


@st.composite
def columns(draw: st.DrawFn) -> list[Column]:
    rows = draw(st.integers(1, 4))
    found = []
    for _ in range(draw(st.integers(1, 8))):
        is_text = draw(st.booleans())
        cell = texts if is_text else st.integers(0, 10**18).map("{:,}".format)
        cells = draw(st.lists(cell, min_size=rows, max_size=rows))
        found.append(Column(draw(names), tuple(cells), is_text=is_text))
    return found


def check_whole(lines: list[str], shown: list[Column], width: int) -> None:
    words = {word for line in lines for word in line.split()}
    for column in shown:
        for cell in column.cells:
            assert set(cell.split()) <= words, cell
    assert not any("…" in line for line in lines)
    longest = max(columns_of(word) for word in words if not set(word) <= {"─"})
    for line in lines:
        # What is wider is one word that cannot be narrower, with its indent and heading.
        assert columns_of(line) <= width or longest + 8 >= columns_of(line) or len(line.split()) == 1, line


@given(columns(), columns(), st.sampled_from(WIDTHS))
def test_every_word_of_a_table_is_whole_and_lines_fit(labels: list[Column], rest: list[Column], width: int) -> None:
    rows = min(len(column.cells) for column in (*labels, *rest))
    labels, rest = (
        [Column(column.heading, column.cells[:rows], is_text=column.is_text) for column in part]
        for part in (labels[:3], rest)
    )

    check_whole(Table("title", tuple(labels), tuple(rest)).lines(width), [*labels, *rest], width)
    check_whole(listing_lines([*labels, *rest], width), [*labels, *rest], width)


@given(texts, st.sampled_from(WIDTHS))
def test_text_is_folded_at_blanks_alone(text: str, width: int) -> None:
    lines = folded(text, width)

    assert " ".join(lines) == text
    assert all(columns_of(line) <= width or " " not in line for line in lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_listings_show_every_name_to_be_typed_whole(width: int) -> None:
    listing = expansions_listing(width, verbose=True)
    words = listing.split()
    table = registered_expansions()

    for (_, op_type), named in table.by_operator.items():
        assert op_type in words
        assert set(told_names(named)) <= set(words)
    for plugin in table.plugins:
        assert plugin.origin in words
    for text in (listing, expansions_listing(width), ops_listing(width), systems_listing(width)):
        assert all(columns_of(line) <= width or len(line.split()) == 1 for line in text.splitlines())


@pytest.mark.parametrize("width", [80, 120])
def test_descriptions_have_room(width: int) -> None:
    """They were once folded to twelve columns beside the names."""
    lines = [
        line for line in expansions_listing(width, verbose=True).splitlines() if re.match(r"\s+what it does: ", line)
    ]

    assert lines
    assert max(map(len, lines)) > width - 15


def test_columns_follow_in_further_tables_and_then_in_lines() -> None:
    label = Column("name", ("conv1.matmul",), is_text=True)
    numbers = [Column(f"n{n}", ("1,000,000",)) for n in range(4)]

    wide, narrow, least = (Table("t", (label,), tuple(numbers)).lines(width) for width in (60, 40, 20))
    assert (wide.count("t"), len(wide)) == (1, 6)
    assert [line for line in narrow if line.startswith("t")] == ["t", "t, continued"]
    assert sum("conv1.matmul" in line for line in narrow) == 2
    assert least[2:5] == [" name: conv1.matmul", " n0: 1,000,000", " n1: 1,000,000"]
