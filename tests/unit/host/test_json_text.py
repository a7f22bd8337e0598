"""JSON of the user: numbers are finite, whatever is written."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.host.inputs import parsed_json
from tests.examples import examples

NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers()
VALUES = st.recursive(
    NUMBERS | st.none() | st.booleans() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each)
)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999", "-1e400", "1" * 5000, "{"])
def test_what_is_no_finite_number_is_refused(word: str) -> None:
    for text in (word, f"[{word}]", f'{{"a": {word}}}'):
        with pytest.raises(ValueError, match=r"against a finite number|limit|Expecting"):
            parsed_json(text)


@examples(60)
@given(VALUES)
def test_all_else_is_read(value: object) -> None:
    assert parsed_json(json.dumps(value)) == value
