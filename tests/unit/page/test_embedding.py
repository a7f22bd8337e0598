"""Values in a page: nothing in them ends an element, and they read back as they were."""

import json
from base64 import b64decode

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.page.document import column, script_json

TEXTS = st.text(st.one_of(st.characters(), st.sampled_from("<>&/-!\u2028\u2029\u202e\x00'\"\\")))


@given(st.recursive(TEXTS | st.integers() | st.booleans(), lambda held: st.lists(held) | st.dictionaries(TEXTS, held)))
def test_json_in_a_script_reads_back_and_has_no_markup(value: object) -> None:
    text = script_json(value)  # type: ignore[arg-type]  # what hypothesis makes is JSON

    assert json.loads(text) == value
    assert not set("<>&\u2028\u2029") & set(text)
    assert text.isascii()


@given(st.lists(st.integers(-(2**53), 2**53)))
def test_a_column_reads_back_exactly_in_as_few_bytes_as_hold_it(values: list[int]) -> None:
    found = column(np.array(values, dtype=np.int64))

    data, is_short = b64decode(str(found["base64"])), found["type"] == "i4"
    held = np.frombuffer(data, np.dtype("<i4")) if is_short else np.frombuffer(data, np.dtype("<f8"))
    assert held.astype(np.int64).tolist() == values
    assert is_short == all(abs(value) < 2**31 for value in values)
