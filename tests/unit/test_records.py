"""Records of both kinds: a field is changed, and fields are read, without a difference."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest
from msgspec import Struct

from dfcompile.records import fields_of, replace


class Kept(Struct, frozen=True, dict=True):
    rows: int
    columns: int = 3

    @cached_property
    def area(self) -> int:
        return self.rows * self.columns


@dataclass(frozen=True)
class Declared:
    rows: int
    columns: int = 3

    @cached_property
    def area(self) -> int:
        return self.rows * self.columns


@pytest.mark.parametrize("kind", [Kept, Declared])
def test_change_keeps_other_fields_and_forgets_what_was_derived(kind: Callable[..., Any]) -> None:
    before = kind(2)
    assert before.area == 6
    after = replace(before, columns=5)
    assert (after.rows, after.columns, after.area) == (2, 5, 10)
    assert (before.columns, before.area) == (3, 6)


@pytest.mark.parametrize("kind", [Kept, Declared])
def test_unknown_field_is_refused(kind: Callable[..., Any]) -> None:
    with pytest.raises(TypeError):
        replace(kind(2), depth=4)


@pytest.mark.parametrize("kind", [Kept, Declared])
def test_fields_stand_in_their_order(kind: Callable[..., Any]) -> None:
    fields = fields_of(kind(2))
    assert fields is not None
    assert list(fields.items()) == [("rows", 2), ("columns", 3)]


@pytest.mark.parametrize("value", [3, "rows", (1, 2), None, Kept, Declared])
def test_what_is_no_record_has_no_fields(value: object) -> None:
    assert fields_of(value) is None


@pytest.mark.parametrize("kind", [Kept, Declared])
def test_records_do_not_change(kind: Callable[..., Any]) -> None:
    record = kind(2)
    with pytest.raises(AttributeError):
        record.rows = 4
