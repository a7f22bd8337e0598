"""Damaged caches of an exploration: other bytes, lines that are whole but wrong, other things in the place."""

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.fuzz.draw import Draw

WRONG: tuple[object, ...] = (
    None, True, -1, 2**63, 2**70, 1.5, "", "1", "a" * 5000, [], {}, [[]], [None], {"a": 1}, "../../secret", "/dev/zero",
)  # fmt: skip
RAW = (
    b"", b"null", b"[]", b"1", b"NaN", b"-Infinity", b"1e999", b"1" * 5000, b"[" * 100_000, b'{"a":' * 5000, b'"\xff"',
    b'"\\ud800"', b'{"front":', b"\x00", b"\r", b"{}",
)  # fmt: skip
HUGE_BYTES = 2**40
STAYING = frozenset({"folder", "pipe", "device", "nowhere", "circle", "link to a folder"})  # which are left as they are


def damaged(content: bytes, draw: Draw) -> bytes:
    """Return the content of a cache with some damage, of bytes or of what whole lines say."""
    for _ in range(draw.choice([1, 1, 1, 2, 5])):
        content = draw.choice(_DAMAGES)(content, draw)
    return content


def is_of_whole_lines(content: bytes) -> bool:
    """Return whether every line fits its checksum, so that nothing is left to say of it but what it means."""
    *lines, rest = content.split(b"\n")
    return not rest and all(line[:64] == hashlib.sha256(line[65:]).hexdigest().encode() for line in lines)


def _flipped(content: bytes, draw: Draw) -> bytes:
    changed = bytearray(content or b"\n")
    place = draw.integer(0, len(changed) - 1)
    changed[place] = draw.choice([0xFF, 0, 10, changed[place] ^ (1 << draw.integer(0, 7))])
    return bytes(changed)


def _cut(content: bytes, draw: Draw) -> bytes:
    place = draw.integer(0, len(content))
    return content[:place] if draw.chance(0.7) else content[place:]


def _inserted(content: bytes, draw: Draw) -> bytes:
    place = draw.integer(0, len(content))
    return content[:place] + draw.choice([b"\n", b"\xff", b" ", b"\x00" * 4096, *RAW]) + content[place:]


def _exchanged(content: bytes, draw: Draw) -> bytes:
    """Give two lines what the other one says, or put the lines in another order, or one twice, or leave one out."""
    lines = content.split(b"\n")
    first, second = (draw.integer(0, len(lines) - 1) for _ in range(2))
    what = draw.integer(0, 3)
    if what == 0:
        one, other = lines[first], lines[second]
        lines[first], lines[second] = one[:65] + other[65:], other[:65] + one[65:]
    elif what == 1:
        lines[first], lines[second] = lines[second], lines[first]
    elif what == 2:
        lines.insert(second, lines[first])
    else:
        del lines[first]
    return b"\n".join(lines)


def _crafted(content: bytes, draw: Draw) -> bytes:
    """Give a line another meaning and the checksum that fits it."""
    lines = content.split(b"\n")
    at = draw.integer(0, len(lines) - 1)
    name, _, text = lines[at][65:].partition(b" ")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # damaged before
        return content
    if not isinstance(value, dict) or not value or draw.chance(0.3):
        text = draw.choice(RAW)
    else:
        text = json.dumps(_changed(value, draw)).encode()
    said = name + b" " + text
    lines[at] = hashlib.sha256(said).hexdigest().encode() + b" " + said
    return b"\n".join(lines)


def _changed(value: dict[str, object], draw: Draw) -> dict[str, object]:
    """Return an entry that no run can have kept: a field of another type, out of range, missing or one more."""
    key = draw.choice(sorted(value))
    inner = value[key]
    what = draw.integer(0, 3)
    if what == 0:
        return {name: each for name, each in value.items() if name != key}
    if what == 1:
        return {**value, "files": [["/dev/zero", "0"], ["../../secret", "0"]]}
    if what == 2 and isinstance(inner, list) and inner and isinstance(inner[0], dict) and inner[0]:
        return {**value, key: [_changed(inner[0], draw), *inner[1:]]}
    fitting = (type(inner), *([float] if isinstance(inner, int) and not isinstance(inner, bool) else []))
    wrong = [each for each in WRONG if not isinstance(each, fitting) or (isinstance(each, int) and each < 0)]
    return {**value, key: draw.choice(wrong)}


_DAMAGES: Sequence[Callable[[bytes, Draw], bytes]] = (
    _flipped,
    _flipped,
    _cut,
    _inserted,
    _exchanged,
    _crafted,
    _crafted,
)


def put_something_else(path: Path, secret: Path, draw: Draw) -> str:
    """Put something that is no cache into the place of one, and return what; ``secret`` is somebody's file."""
    path.unlink()
    name = draw.choice(sorted(_OTHERS))
    _OTHERS[name](path, secret)
    return name


def _folder(path: Path, _secret: Path) -> None:
    path.mkdir()
    (path / "file").write_text("text")


def _database(path: Path, _secret: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE results (key TEXT, checksum TEXT)")
    database.close()


def _huge(path: Path, _secret: Path) -> None:
    path.touch()
    os.truncate(path, HUGE_BYTES)


def _text(path: Path, secret: Path) -> None:
    path.write_bytes(secret.read_bytes())


_OTHERS: dict[str, Callable[[Path, Path], None]] = {
    "folder": _folder,
    "pipe": lambda path, _secret: os.mkfifo(path),
    "device": lambda path, _secret: path.symlink_to("/dev/zero"),
    "nowhere": lambda path, _secret: path.symlink_to("/nowhere/at/all"),
    "circle": lambda path, _secret: path.symlink_to(path.name),
    "link to a file": lambda path, secret: path.symlink_to(secret),
    "link to a folder": lambda path, secret: path.symlink_to(secret.parent),
    "database": _database,
    "huge file": _huge,
    "text": _text,
}
