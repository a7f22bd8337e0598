"""References to nodes in files: a scope's name, with a member, a range of members or a list of them."""

import json
import re
from typing import NamedTuple

import numpy as np

from dfcompile.canonical_dag.dag import NO_MEMBER, Int64
from dfcompile.errors import UserError
from dfcompile.host.printable import json_text

_SHOWN = 100  # characters

_PLAIN = re.compile(r'[^\s"\[\]=,#]+')
_REFERENCE = re.compile(r'("(?:\\.|[^"\\])*"|[^\s"\[\]=,#]+)(?:\[(\d{1,19})(?::(\d{1,19}))?\])?')
_LISTED = re.compile(r'("(?:\\.|[^"\\])*"|[^\s"\[\]=,#]+)\[(\d{1,18}(?:,\d{1,18})+)\]')
_NUMBERS = re.compile(r"\d{1,18}(?:,\d{1,18})*")


class Reference(NamedTuple):
    """One node (``relu``), one member (``mv[3]``) or a range of members (``mv[0:576]``) of a scope."""

    scope: str
    first: int  # NO_MEMBER: the scope's single node
    size: int

    def __str__(self) -> str:
        name = quoted(self.scope)
        if self.first == NO_MEMBER:
            return name
        members = f"{self.first}" if self.size == 1 else f"{self.first}:{self.first + self.size}"
        return f"{name}[{members}]"


class Listing(NamedTuple):
    """Members of a scope one by one (``mv[3,1,3]``): the ends of as many edges, in their order."""

    scope: str
    members: Int64

    @property
    def size(self) -> int:
        """Number of ends."""
        return len(self.members)

    def __str__(self) -> str:
        return f"{quoted(self.scope)}[{numbers_text(self.members)}]"


def parse_ends(text: str, where: str) -> Reference | Listing:
    """Parse the end of edges: a reference, or several members one by one.

    Raises:
        UserError: with ``where`` in front.
    """
    found = _LISTED.fullmatch(text) if text.endswith("]") and "," in text else None
    if found is None:
        return parse_reference(text, where)
    return Listing(unquoted(found[1], where), parse_numbers(found[2], "members", where))


def parse_numbers(text: str, what: str, where: str) -> Int64:
    """Parse whole numbers between commas.

    Raises:
        UserError: with ``where`` in front.
    """
    if not text.isascii() or not _NUMBERS.fullmatch(text):
        raise UserError(f"{where}: {what} {shortened(text)!r} against whole numbers and commas")
    return np.fromstring(text, dtype=np.int64, sep=",")


def numbers_text(numbers: Int64) -> str:
    """Return whole numbers with commas between."""
    return ",".join(map(str, numbers.tolist()))


def parse_reference(text: str, where: str) -> Reference:
    """Parse a reference.

    Raises:
        UserError: with ``where`` in front.
    """
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise UserError(f"{where}: {shortened(text)!r} against a name, name[member] or name[first:end]")
    name, first, end = found.groups()
    scope = unquoted(name, where)
    if first is None:
        return Reference(scope, NO_MEMBER, 1)
    count = 1 if end is None else int(end) - int(first)
    if count < 1 or int(first) >= 2**62:
        raise UserError(f"{where}: empty or impossible range {text!r} against name[first:end]")
    return Reference(scope, int(first), count)


def quoted(name: str) -> str:
    r"""Return a name as one token: as it is, or as a JSON string if it has a blank or one of ``"[]=,#``.

    What is not seen, such as a control character, stands in that string as ``\uXXXX``.
    """
    return name if _PLAIN.fullmatch(name) and name.isprintable() else json_text(name)


def unquoted(token: str, where: str) -> str:
    """Undo `quoted`.

    Raises:
        UserError: a broken string, with ``where`` in front.
    """
    if not token.startswith('"'):
        return token
    try:
        name = str(json.loads(token))
    except ValueError as error:
        raise UserError(f"{where}: broken string {shortened(token)} against a JSON string: {error}") from None
    check_characters(name, where)
    return name


def check_characters(text: str, where: str) -> None:
    """Check that a text can be written to a file: JSON can spell halves of characters.

    Raises:
        UserError: with ``where`` in front.
    """
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise UserError(f"{where}: half a character in {shortened(text)!r} against whole ones")


def shortened(text: str) -> str:
    """Return a text as an error message shows it."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
