"""What is shown holds no character that a terminal or a line format obeys, and every one that is seen."""

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.host.printable import json_text, printable

OBEYED = ("Cc", "Cf", "Cs", "Zl", "Zp")
EVERY = "".join(map(chr, range(sys.maxunicode + 1)))


def test_no_character_that_is_obeyed_is_left_and_no_other_assigned_one_is_changed() -> None:
    for char in EVERY:
        category = unicodedata.category(char)
        if category in OBEYED:
            assert printable(char).isascii(), hex(ord(char))
            assert printable(char).isprintable(), hex(ord(char))
        elif category not in ("Cn", "Co"):
            assert printable(char) == char, hex(ord(char))


@pytest.mark.parametrize("text", ["conv1.weight", "卷积/0", "Schicht ä", "слой_1", "طبقة", "परत", "層\u3000一"])
def test_names_of_every_script_stay_readable(text: str) -> None:
    assert (printable(text), json_text(text)) == (text, f'"{text}"')


@given(st.lists(st.text(st.characters())))
def test_json_reads_back_the_same_and_shows_nothing_that_is_obeyed(texts: list[str]) -> None:
    for indent in (None, 2):
        text = json_text(texts, indent=indent)
        assert json.loads(text) == texts
        assert all(unicodedata.category(char) not in OBEYED for char in text.replace("\n", ""))
