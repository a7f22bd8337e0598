"""Texts of options, as the command line has them, and what they mean."""

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType

from dfcompile.errors import UserError
from dfcompile.expansion_names import WORDS
from dfcompile.options import LARGEST_COUNT, ExpansionRule, Fifos, FixedInput, Number

_MOST_DIGITS = 20  # of an integer of 64 bits
REAL = r"[+-]?(?:\d{1,40}(?:\.\d{1,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?"


def parse_pes(text: str) -> tuple[int, ...]:
    """Read numbers of processing elements such as ``16,128``.

    Raises:
        UserError: not positive integers, or one of them twice.

    >>> parse_pes("16,128")
    (16, 128)
    """
    return _counts("--pes", text)


def parse_chips(text: str) -> tuple[int, ...]:
    """Read numbers of chips such as ``1,2,4,8``.

    Raises:
        UserError: not positive integers, or one of them twice.

    >>> parse_chips("1,8")
    (1, 8)
    """
    return _counts("--chips", text)


def parse_expand(texts: Iterable[str]) -> tuple[ExpansionRule, ...]:
    """Read rules such as ``MatMul=mv,op`` or ``conv1:MatMul=ip``; words such as ``auto`` are none.

    Raises:
        UserError: another form, or two rules about the same operators.

    >>> parse_expand(["conv1:MatMul=mv,op"])
    (ExpansionRule(op_type='MatMul', names=('mv', 'op'), origin='conv1'),)
    """
    rules = tuple(_expansion_rule(text) for text in texts if text.strip() not in WORDS)
    _reject_duplicates("--expand", tuple(rule.key for rule in rules))
    return rules


def _expansion_rule(text: str) -> ExpansionRule:
    # Names of the user's operators may hold a colon or an equals sign, types and names of expansions never do.
    left, equals, right = text.rpartition("=")
    origin, _, op_type = left.rpartition(":")
    names = tuple(name.strip() for name in right.split(","))
    if not equals or not op_type.strip() or not all(names):
        raise UserError(f"--expand: found {text!r} against [ORIGIN:]OP=NAME[,NAME…] or ORIGIN=NAME[,NAME…]")
    _reject_duplicates(f"--expand {left}", names)
    return ExpansionRule(op_type.strip(), names, origin)


def parse_passes(text: str) -> tuple[str, ...]:
    """Split a list of passes such as ``fuse{max=8,deep=true},fold`` at the commas outside of braces.

    Raises:
        UserError: an empty name or one name twice.

    >>> parse_passes("fuse{max=8,deep=true}, fold")
    ('fuse{max=8,deep=true}', 'fold')
    """
    passes = tuple(found.strip() for found in re.split(r",(?![^{}]*\})", text))
    names = tuple(found.partition("{")[0].strip() for found in passes)
    if not all(names):
        raise UserError(f"--passes: found {text!r} against NAME[{{OPTION=VALUE,…}}][,NAME…]")
    _reject_duplicates("--passes", names)
    return passes


def parse_partitions(text: str) -> tuple[str, ...]:
    """Read names of partitioners to compare, such as ``sb-rlx,best``.

    Raises:
        UserError: an empty name or one name twice.
    """
    return _names("--partition", text)


def parse_fifos(text: str) -> Fifos:
    """Read how large FIFOs are: ``in-flight``, ``rule``, ``minimal`` or a number of elements.

    Raises:
        UserError: none of them.

    >>> parse_fifos("rule"), parse_fifos("4")
    ('rule', 4)
    """
    match text:
        case "in-flight" | "rule" | "minimal":
            return text
    if not text.isdecimal():
        raise UserError(f"--fifo: found {text!r} against in-flight, rule, minimal or a number of elements")
    return parse_count("--fifo", text)


def parse_max_fifo(text: str) -> int:
    """Read how many elements a FIFO may hold.

    Raises:
        UserError: no positive integer.
    """
    return parse_count("--max-fifo", text)


def parse_slack(text: str) -> Fraction:
    """Read a percentage as a part of 1.

    Raises:
        UserError: no number from 0 to 1000.

    >>> parse_slack("2.5")
    Fraction(1, 40)
    """
    percentage = read_real(text)
    if percentage is None or not 0 <= percentage <= 1000:
        raise UserError(f"--slack: found {text!r} against a percentage from 0 to 1000, such as 10")
    return percentage / 100


def read_real(text: str) -> Fraction | None:
    """Read a number as people and programs write one; None if it is none.

    >>> read_real("2.5"), read_real("1e3"), read_real("-.5E-1"), read_real("1e9999")
    (Fraction(5, 2), Fraction(1000, 1), Fraction(-1, 20), None)
    """
    # Few digits: Python refuses to read thousands, and an exponent may ask for more.
    return Fraction(text) if re.fullmatch(REAL, text.strip(), re.ASCII) else None


def parse_shapes(texts: Iterable[str]) -> Mapping[str, tuple[int, ...]]:
    """Read input shapes such as ``input=1x1x28x28``.

    Raises:
        UserError: another form, a size that is no integer from 0, or one input twice.

    >>> dict(parse_shapes(["x=1x28"]))
    {'x': (1, 28)}
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, equals, sizes = text.rpartition("=")
        if not equals or not name:
            raise UserError(f"--shape: found {text!r} against INPUT=SIZExSIZE…")
        if name in shapes:
            raise UserError(f"--shape: input {name!r} is given twice")
        if "," in sizes:
            raise UserError(
                f"--shape {name}: found {sizes!r} against sizes with 'x' between (--shape {name}={_crossed(sizes)})"
            )
        shapes[name] = tuple(parse_count(f"--shape {name}", size, least=0) for size in sizes.split("x"))
    return MappingProxyType(shapes)


def parse_dims(texts: Iterable[str]) -> Mapping[str, int]:
    """Read sizes of symbolic dimensions such as ``batch=8``.

    Raises:
        UserError: another form, a size that is no integer from 0, or one dimension twice.

    >>> dict(parse_dims(["batch=8"]))
    {'batch': 8}
    """
    dims: dict[str, int] = {}
    for text in texts:
        name, equals, size = text.rpartition("=")
        if not equals or not name:
            raise UserError(f"--dim: found {text!r} against NAME=SIZE")
        if name in dims:
            raise UserError(f"--dim: {name!r} is given twice")
        dims[name] = parse_count(f"--dim {name}", size, least=0)
    return MappingProxyType(dims)


def parse_fixed_inputs(texts: Iterable[str]) -> Mapping[str, FixedInput]:
    """Read values of inputs such as ``use_cache=false`` or ``sizes=1,-1,64``.

    Raises:
        UserError: another form, or one input twice.

    >>> parse_fixed_inputs(["sizes=1,-1"])["sizes"].numbers
    (1, -1)
    """
    values: dict[str, FixedInput] = {}
    for text in texts:
        name, equals, words = text.rpartition("=")
        if not equals or not name:
            raise UserError(f"--input: found {text!r} against INPUT=VALUE[,VALUE…]")
        if name in values:
            raise UserError(f"--input: {name!r} is given twice")
        values[name] = FixedInput(tuple(_number(f"--input {name}", word.strip()) for word in words.split(",")))
    return MappingProxyType(values)


def _number(where: str, word: str) -> Number:
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    if re.fullmatch(rf"[+-]?\d{{1,{_MOST_DIGITS}}}", word, re.ASCII):
        return int(word)
    if not re.fullmatch(rf"{REAL}|[+-]?inf|nan", word, re.ASCII):
        raise UserError(f"{where}: found {word!r} against a number, true or false")
    return float(word)


def _crossed(sizes: str) -> str:
    return "x".join(size.strip() for size in sizes.strip("[]() ").split(",") if size.strip())


def _names(where: str, text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UserError(f"{where}: found {text!r} against NAME[,NAME…]")
    _reject_duplicates(where, names)
    return names


def _counts(where: str, text: str) -> tuple[int, ...]:
    counts = tuple(parse_count(where, word) for word in text.split(","))
    _reject_duplicates(where, counts)
    return counts


def parse_count(where: str, word: str, *, least: int = 1) -> int:
    """Read an integer that is no less than 0 or 1; an error names where it stands."""
    stripped = word.strip()
    # The length comes first: Python refuses to read thousands of digits.
    is_number = len(stripped) <= len(str(LARGEST_COUNT)) and stripped.isascii() and stripped.isdigit()
    if not is_number or not least <= int(stripped) <= LARGEST_COUNT:
        wanted = "a positive integer" if least else "an integer from 0"
        raise UserError(f"{where}: found {stripped!r} against {wanted} up to {LARGEST_COUNT}")
    return int(stripped)


def _reject_duplicates(where: str, words: tuple[int, ...] | tuple[str, ...]) -> None:
    for position, word in enumerate(words):
        if word in words[:position]:
            raise UserError(f"{where}: {word} is given twice")
