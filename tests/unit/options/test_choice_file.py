"""Files of choices are read as they are written; what is wrong in one is named with its line."""

import shlex
from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.options.choice_file import choice_options, choice_text, parse_choices

FILE = Path("choice.txt")


def test_what_is_written_is_read() -> None:
    options = choice_options(["MatMul=split-k{parts=2}", "odd name's:Conv=fft"], ["pieces=16", "a b:declared"])
    found = parse_choices(choice_text("two", {16: options, 128: "--expand published"}), FILE)

    assert list(found) == [16, 128]
    assert [(rule.key, rule.names) for rule in found[16].rules] == [
        ("MatMul", ("split-k{parts=2}",)),
        ("odd name's:Conv", ("fft",)),
    ]
    assert (found[16].granularity.every, found[16].granularity.own) == ("pieces=16", ("a b:declared",))
    assert found[128].rules == ()


def test_options_are_pasted_as_they_are_unless_a_shell_would_change_them() -> None:
    plain, quoted = "MatMul=split-k{parts=2}", "a*:MatMul=mv"
    options = choice_options([plain, quoted, "x{a=1,b=2}"], [])

    assert shlex.split(options) == ["--expand", plain, "--expand", quoted, "--expand", "x{a=1,b=2}"]
    assert plain in options.split()
    assert f"'{quoted}'" in options


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("--expand Conv=fft", "found 0 times --pes against once"),
        ("--pes 4 --pes 8", "found 2 times --pes against once"),
        ("--pes", "found other words against"),
        ("--pes 4 --system sn30", "found other words against"),
        ("--pes 4 --expand 'Conv=fft", "found an open quotation against"),
        ("--pes 0", "--pes: "),
        ("--pes 4 --expand Conv", "--expand: found 'Conv' against"),
        ("--pes 4 --expand Conv=fft,direct", "--expand Conv: found 2 names against one"),
        ("--pes 4 --granularity declared --granularity pieces=2", "granularity: "),
        ("--pes 9\n--pes 9", "9 processing elements are given twice"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(line: str, error: str) -> None:
    with pytest.raises(UserError) as raised:
        parse_choices(f"# a comment\n\n{line}\n", FILE)
    assert str(raised.value).startswith(f"choice.txt:{3 + line.count(chr(10))}: {error}")
