"""Pieces of single operators: of all their scopes alike, or fewer of those that do little of the work."""

import re
from itertools import product

import pytest

from dfcompile.canonical_dag.extraction import Granularity, parse_granularity
from dfcompile.canonical_dag.extraction.families import divide
from dfcompile.canonical_dag.extraction.scopes import Access, MapScope
from dfcompile.errors import UserError


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ("c:1:pieces=4", Granularity(own=(("c:1", 4),))),
        ("c:declared", Granularity(own=(("c", None),))),
        ("c:pieces=4,rest=2", Granularity(own=(("c", 4),), rest=(("c", 2),))),
    ],
)
def test_granularity_of_one_operator_is_parsed(own: str, expected: Granularity) -> None:
    assert parse_granularity("declared", [own]) == expected
    assert expected.parts == ("declared", own)


def test_the_rest_of_an_operator_is_said_beside_the_pieces_of_all() -> None:
    granularity = Granularity(pieces=8, rest=(("c", 2),))

    assert granularity.parts == ("pieces=8", "c:pieces=8,rest=2")
    again = parse_granularity("pieces=8", granularity.parts[1:])
    for origin, is_large in product("cd", (True, False)):
        pieces = 2 if origin == "c" and not is_large else 8
        assert granularity.pieces_of(origin, is_large=is_large) == pieces
        assert again.pieces_of(origin, is_large=is_large) == pieces


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ("c:rest=2", "granularity 'c:rest=2': rest of one operator against pieces=N, pieces=N,rest=N or declared"),
        ("c:pieces=4,rest=0", "granularity 'c:pieces=4,rest=0': rest '0' against a whole number from 1 to"),
        ("c:pieces=4,split=2", "granularity 'c:pieces=4,split=2': pieces and split of one operator against pieces=N"),
        ("c:pieces=4,rst=2", "granularity 'c:pieces=4,rst=2': 'rst=2' against declared"),
    ],
)
def test_bad_granularity_of_one_operator_is_refused(own: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(message)}"):
        parse_granularity("declared", [own])


def test_scopes_with_less_than_half_the_iterations_of_the_largest_are_the_rest() -> None:
    def scopes(*origins: str) -> list[MapScope]:
        return [
            MapScope(f"s{rows}", origin, None, (rows,), (True,), (Access("x", 0, (1,)),), (Access("y", 0, (1,)),))
            for rows, origin in zip((16, 8, 7), origins, strict=True)
        ]

    def tasks(*origins: str) -> list[int]:
        families = divide(scopes(*origins), Granularity(pieces=4, rest=(("c", 2),)))
        return [family.members for family in families]

    assert tasks("c", "c", "c") == [4, 4, 2]
    assert tasks("c", "d", "c") == [4, 4, 2]
    assert tasks("d", "c", "c") == [4, 4, 4]  # where the larger ones are of another, they are large
    assert tasks("d", "d", "d") == [4, 4, 4]


def test_other_numbers_for_one_operator_take_the_place_of_its_own() -> None:
    known = parse_granularity("pieces=8", ["a:pieces=4,rest=2", "b:pieces=3,rest=1"])

    assert str(known.but_for("a", 5, None)) == "pieces=8,b:pieces=3,rest=1,a:pieces=5"
    assert str(known.but_for("c", None, 6)) == "pieces=8,a:pieces=4,rest=2,b:pieces=3,rest=1,c:declared,rest=6"
