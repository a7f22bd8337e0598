"""Design files in binary: the same designs as text, told apart by their content; damage is one clear line."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dfcompile.cli.main import main
from dfcompile.dfmodel_backend.design_file.message import bytes_of, parse_message, read_message, text_of
from dfcompile.dfmodel_backend.design_file.reading import design_of, parse_design, read_design
from dfcompile.errors import UserError
from tests.examples import examples
from tests.locations import DESIGNS

RING = DESIGNS / "llm_175B_fwd_sramdram_mm.txt"
BINARY = bytes_of(read_message(RING))
SMALL = bytes_of(read_message(DESIGNS / "fft_a100_1024.txt"))


@pytest.mark.parametrize("path", sorted(DESIGNS.glob("**/*.txt")), ids=lambda path: path.stem)
def test_binary_is_the_same_message(path: Path, tmp_path: Path) -> None:
    message = read_message(path)
    binary = tmp_path / "design.pb"
    binary.write_bytes(bytes_of(message))

    assert text_of(read_message(binary)) == text_of(message)
    assert read_design(binary) == parse_design(text_of(message), "x.txt")


@pytest.mark.parametrize("suffix", [".pb", ".bin", ".txt", ""])
def test_binary_is_told_by_its_content_whatever_its_name(suffix: str, tmp_path: Path) -> None:
    binary = tmp_path / f"design{suffix}"
    binary.write_bytes(SMALL)

    assert read_design(binary) == read_design(DESIGNS / "fft_a100_1024.txt")


def test_text_may_be_called_binary(tmp_path: Path) -> None:
    text = tmp_path / "design.pb"
    text.write_bytes(b"\xef\xbb\xbf" + RING.read_bytes())  # with the byte order mark of some editors

    assert read_design(text) == read_design(RING)


def test_solved_files_are_one_message_and_solving_either_gives_both_again(tmp_path: Path) -> None:
    setup, once, from_text, from_binary = (tmp_path / name for name in ("setup.bin", "once", "text", "binary"))
    setup.write_bytes(BINARY)
    words = ["--compat", "dfmodel", "--format", "json", "-o"]

    assert main([str(setup), *words, str(once)]) == 0
    assert main([str(once / "solved.txt"), *words, str(from_text)]) == 0
    assert main([str(once / "solved.pb"), *words, str(from_binary)]) == 0

    text, binary = (once / "solved.txt").read_text(), (once / "solved.pb").read_bytes()
    assert text_of(read_message(once / "solved.pb")) == text
    assert bytes_of(parse_message(text, "x.txt")) == binary
    for folder in (from_text, from_binary):
        assert (folder / "solved.txt").read_text() == text
        assert (folder / "solved.pb").read_bytes() == binary


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_design(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found an empty file against a design"),
        (b" \n\t\n", "found an empty file against a design"),
        (b"\xff\xfe\xfd", "neither UTF-8 text, because of byte 0xff in line 1, nor a binary DFModel message"),
        (b"system {\n name: \xe9 }", "because of byte 0xe9 in line 2"),
        (b"system {\n num_chip: 1\0 }", r"a damaged one (nor text: byte 0x00 in line 2)"),
        (BINARY[:-3], "not a binary DFModel message, or a damaged one (nor text: byte 0x"),
        (BINARY[:100], "not a binary DFModel message, or a damaged one"),
        (BINARY[1:], "not a binary DFModel message, or a damaged one"),
        (BINARY + b"\x32\x00", "unknown field with number 6 of DSE (not a DFModel message, or a newer one)"),
        (BINARY + b"\x12\x03\x98\x06\x01", "unknown field with number 99 of System"),
        # a kernel of the oldest age, whose dimensions have the number of today's topological_number
        (b"\x0a\x0b\x0a\x09\x0a\x01Q\x10\x03\x1a\x02\x08\x01", "unknown field with number 3 of Kernel"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "not a binary DFModel message, or a damaged one"),
    ],
)
def test_damaged_files_are_one_clear_line(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "design.pb"
    path.write_bytes(content)

    assert message in refusal(path)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    assert "cannot be read: no such file" in refusal(tmp_path / "none.pb")
    assert "cannot be read: is a directory" in refusal(tmp_path)


@settings(examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, len(SMALL) - 1), byte=st.integers(0, 255), ends=st.booleans())
@example(place=0, byte=0, ends=True)
def test_any_damage_is_a_design_or_one_clear_line(tmp_path: Path, place: int, byte: int, *, ends: bool) -> None:
    path = tmp_path / "design.pb"
    path.write_bytes(SMALL[:place] + bytes([byte]) + (b"" if ends else SMALL[place + 1 :]))

    try:
        message = read_message(path)
        design_of(message, "x.pb")
    except UserError as error:
        assert "\n" not in str(error)  # noqa: PT017  # either outcome is right
