"""What a user gives for an option, as values of Python or as the texts of the command line, and what it means.

A reader takes how the option is called, for its errors, and what is given. Nothing heavy is imported.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from dfcompile.errors import UserError, nearest
from dfcompile.expansion_names import WORDS, word_of
from dfcompile.options.numbers import MOST_DIGITS, REAL, Counts, count, parts, reject_duplicates, within
from dfcompile.options.words import Expand, ExpansionRule, Fifos, FixedInput, Granularities, MicroBatches, Number

Names: TypeAlias = str | Iterable[str]  # "mv", ["mv", "op"] or "mv,op"
Rules: TypeAlias = Mapping[str, Names] | Names  # {"MatMul": ["mv", "op"]} or ["MatMul=mv,op"]
Dims: TypeAlias = Mapping[str, int] | Names  # {"batch": 8} or ["batch=8"]
Shapes: TypeAlias = Mapping[str, Sequence[int]] | Names  # {"x": (1, 28)} or ["x=1x28"]
FixedInputs: TypeAlias = Mapping[str, object] | Names  # {"use_cache": False} or ["use_cache=false"]
File: TypeAlias = str | PathLike[str]

Value = TypeVar("Value")
Word = TypeVar("Word", bound=str)


def as_given(_where: str, given: Value) -> Value:
    """Return what is given."""
    return given


def yes_or_no(_where: str, given: bool) -> bool:  # noqa: FBT001  # a value, as all readers take it
    """Return whether what is given says yes."""
    return bool(given)


def text(_where: str, given: str) -> str:
    """Return a text."""
    return str(given)


def file_or_name(_where: str, given: File) -> str:
    """Return the name of a file, or of something that is shipped."""
    return str(given)


def path(_where: str, given: File) -> Path:
    """Return the file of a name."""
    return Path(given)


def names(where: str, given: Names) -> tuple[str, ...]:
    """Read names such as ``sb-rlx,best``.

    Raises:
        UserError: an empty name or one name twice.
    """
    found = tuple(part.strip() for part in parts(given))
    if not all(found):
        raise UserError(f"{where}: found {','.join(parts(given))!r} against NAME[,NAME…]")
    reject_duplicates(where, found)
    return found


def joined_counts(_where: str, given: Counts) -> str:
    """Return numbers, which whoever uses them reads, as one option would list them."""
    return ",".join(parts(given))


def texts(_where: str, given: Names) -> tuple[str, ...]:
    """Return the texts of several options of one name."""
    return (given,) if isinstance(given, str) else tuple(given)


def word(known: Iterable[Word]) -> Callable[[str, str], Word]:
    """Return what reads one of a few words.

    >>> from dfcompile.options.words import Timing
    >>> word(Timing)("--timing", "steady")
    <Timing.STEADY: 'steady'>
    """
    words = tuple(known)
    return partial(one_of, known=words)


def one_of(where: str, given: str, known: Sequence[Word]) -> Word:
    """Return a word of a small set.

    Raises:
        UserError: it is none of them.
    """
    for one in known:
        if given == one:
            return one
    raise UserError(f"{where} {given!r}: unknown{nearest(str(given), map(str, known))}")


def some_of(known: Sequence[str]) -> Callable[[str, Names], tuple[str, ...]]:
    """Return what reads several of a few words, each once.

    >>> some_of(("makespan", "io"))("--objective", "io, makespan")
    ('io', 'makespan')
    """

    def read(where: str, given: Names) -> tuple[str, ...]:
        found = tuple(one_of(where, each.strip(), known) for each in parts(given))
        reject_duplicates(where, found)
        return found

    return read


def expansions(_where: str, given: Rules) -> Expand:
    """Read rules such as ``MatMul=mv,op`` or ``conv1:MatMul=ip``, and what becomes of the rest, such as ``auto``.

    Raises:
        UserError: another form, or two rules about the same operators.
    """
    if isinstance(given, Mapping):
        given = [f"{key}={','.join(parts(listed))}" for key, listed in given.items()]
    rules = texts("", given)
    return Expand(parse_expand(rules), word_of(rules))


def parse_expand(texts: Iterable[str]) -> tuple[ExpansionRule, ...]:
    """Read rules such as ``MatMul=mv,op`` or ``conv1:MatMul=ip``; words such as ``auto`` are none.

    Raises:
        UserError: another form, or two rules about the same operators.

    >>> parse_expand(["conv1:MatMul=mv,split-k{parts=8}"])
    (ExpansionRule(op_type='MatMul', names=('mv', 'split-k{parts=8}'), origin='conv1'),)
    """
    rules = tuple(_expansion_rule(text) for text in texts if text.strip() not in WORDS)
    reject_duplicates("--expand", tuple(rule.key for rule in rules))
    return rules


def _expansion_rule(text: str) -> ExpansionRule:
    # Names of the user's operators may hold a colon or an equals sign, types and names of expansions never do.
    # What is in braces are values of parameters.
    match = re.fullmatch(r"(?P<left>.*)=(?P<names>(?:[^={}]|\{[^{}]*\})*)", text, re.DOTALL)
    left, names = ("", "") if match is None else (match["left"], match["names"])
    origin, _, op_type = left.rpartition(":")
    found = tuple(name.strip() for name in _outside_braces(names))
    if not op_type.strip() or not all(found):
        raise UserError(f"--expand: found {text!r} against [ORIGIN:]OP=NAME[,NAME…] or ORIGIN=NAME[,NAME…]")
    reject_duplicates(f"--expand {left}", found)
    return ExpansionRule(op_type.strip(), found, origin)


def passes(where: str, given: Names) -> tuple[str, ...]:
    """Split lists of passes such as ``fuse{max=8,deep=true},fold`` at the commas outside of braces.

    Raises:
        UserError: an empty name or one name twice.

    >>> passes("--passes", "fuse{max=8,deep=true}, fold")
    ('fuse{max=8,deep=true}', 'fold')
    """
    listed = given if isinstance(given, str) else ",".join(given)
    found = tuple(each.strip() for each in _outside_braces(listed))
    called = tuple(each.partition("{")[0].strip() for each in found)
    if not all(called):
        raise UserError(f"{where}: found {listed!r} against NAME[{{OPTION=VALUE,…}}][,NAME…]")
    reject_duplicates(where, called)
    return found


def _outside_braces(listed: str) -> list[str]:
    """Split a list at the commas outside of braces."""
    return re.split(r",(?![^{}]*\})", listed)


def granularities(_where: str, given: Names) -> Granularities:
    """Split what is said of all operators, if anything is, from what is said of single ones.

    Raises:
        UserError: the former is said twice, or the latter twice of one operator.

    >>> granularities("--granularity", ["pieces=64", "conv1:declared"])
    Granularities(every='pieces=64', own=('conv1:declared',))
    """
    said = texts("", given)
    every, own = ([text for text in said if (":" in text) is is_own] for is_own in (False, True))
    origins = [text.rpartition(":")[0] for text in own]
    if len(every) > 1:
        raise UserError(f"granularity: {' and '.join(every)} against one of all operators")
    twice = next((origin for place, origin in enumerate(origins) if origin in origins[:place]), None)
    if twice is not None:
        raise UserError(f"granularity: {twice!r} given twice against once")
    return Granularities(every[0] if every else None, tuple(own))


def micro_batches(where: str, given: str) -> MicroBatches:
    """Read in which parts a model runs: ``auto``, ``whole``, or the size of a part and how many run at once.

    Raises:
        UserError: none of them.

    >>> micro_batches("--micro-batches", "batch=8/4")
    MicroBatches(dimension='batch', size=8, at_once=4)
    """
    name, is_sized, said = given.rpartition("=")
    size, is_divided, groups = said.partition("/")
    if is_sized and name:
        return MicroBatches(name, count(f"{where} {name}", size), count(f"{where} {name}", groups) if is_divided else 1)
    if given not in {"auto", "whole"}:
        raise UserError(f"{where}: found {given!r} against auto, whole or NAME=SIZE[/GROUPS]")
    return MicroBatches(given)


def fifos(where: str, given: int | str) -> Fifos:
    """Read how large FIFOs are: ``in-flight``, ``rule``, ``minimal`` or a number of elements.

    Raises:
        UserError: none of them.

    >>> fifos("--fifo", "rule"), fifos("--fifo", "4")
    ('rule', 4)
    """
    match given:
        case "in-flight" | "rule" | "minimal":
            return given
    if not str(given).isdecimal():
        raise UserError(f"{where}: found {given!r} against in-flight, rule, minimal or a number of elements")
    return count(where, given)


FIFO_KINDS = ("pass-through", "registered")
PARTS = ("fifo", "latency", "pipeline", "ports")
MOST_CYCLES = 10**6  # of a part of a machine


def machine_parts(where: str, given: Dims) -> Mapping[str, int | str]:
    """Read what parts of a machine take, such as ``fifo=registered,ports=2``.

    Raises:
        UserError: another form, no such part or value, or one part twice.

    >>> dict(machine_parts("--what-if", "fifo=registered,ports=2"))
    {'fifo': 'registered', 'ports': 2}
    """

    def value(name: str, one: str | int) -> int | str:
        if one_of(where, name, PARTS) == "fifo":
            return one_of(f"{where} fifo", str(one), FIFO_KINDS)
        return within(int(name == "ports"), MOST_CYCLES)(f"{where} {name}", one)

    listed = given if isinstance(given, Mapping) else names(where, given)
    return _by_name(listed, value, f"{where}: found {{!r}} against PART=VALUE", f"{where}: part {{!r}}")


def shapes(where: str, given: Shapes) -> Mapping[str, tuple[int, ...]]:
    """Read input shapes such as ``input=1x1x28x28``.

    Raises:
        UserError: another form, a size that is no integer from 0, or one input twice.

    >>> dict(shapes("--shape", ["x=1x28"])), dict(shapes("--shape", {"x": [1, 28]}))
    ({'x': (1, 28)}, {'x': (1, 28)})
    """

    def sizes(name: str, listed: str | Sequence[int]) -> tuple[int, ...]:
        if isinstance(listed, str) and "," in listed:
            crossed = "x".join(size.strip() for size in listed.strip("[]() ").split(",") if size.strip())
            raise UserError(
                f"{where} {name}: found {listed!r} against sizes with 'x' between ({where} {name}={crossed})"
            )
        parts = listed.split("x") if isinstance(listed, str) else listed
        return tuple(count(f"{where} {name}", size, least=0) for size in parts)

    return _by_name(given, sizes, f"{where}: found {{!r}} against INPUT=SIZExSIZE…", f"{where}: input {{!r}}")


def dims(where: str, given: Dims) -> Mapping[str, int]:
    """Read sizes of symbolic dimensions such as ``batch=8``.

    Raises:
        UserError: another form, a size that is no integer from 0, or one dimension twice.

    >>> dict(dims("--dim", ["batch=8"])), dict(dims("--dim", {"batch": 8}))
    ({'batch': 8}, {'batch': 8})
    """

    def size(name: str, one: str | int) -> int:
        return count(f"{where} {name}", one, least=0)

    return _by_name(given, size, f"{where}: found {{!r}} against NAME=SIZE", f"{where}: {{!r}}")


def fixed_inputs(where: str, given: FixedInputs) -> Mapping[str, FixedInput]:
    """Read values of inputs such as ``use_cache=false`` or ``sizes=1,-1,64``; in Python also arrays.

    Raises:
        UserError: another form, a value is no number, truth value or array of these, or one input twice.

    >>> fixed_inputs("--input", ["sizes=1,-1"])["sizes"].numbers
    (1, -1)
    >>> fixed_inputs("--input", {"sizes": [1, -1]})["sizes"].shape
    (2,)
    """

    def value(name: str, listed: object) -> FixedInput:
        if not isinstance(listed, str):
            return _array(name, listed)
        return FixedInput(tuple(_number(f"{where} {name}", each.strip()) for each in listed.split(",")))

    return _by_name(given, value, f"{where}: found {{!r}} against INPUT=VALUE[,VALUE…]", f"{where}: {{!r}}")


def _array(name: str, value: object) -> FixedInput:
    import numpy as np

    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise UserError(f"input {name!r}: found {type(value).__name__} against a number or an array") from error
    numbers = tuple(array.ravel().tolist())
    if not all(isinstance(number, bool | int | float) for number in numbers):
        raise UserError(f"input {name!r}: found {type(value).__name__} of {array.dtype} against numbers")
    return FixedInput(numbers, array.shape or None)


def _number(where: str, word: str) -> Number:
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    if re.fullmatch(rf"[+-]?\d{{1,{MOST_DIGITS}}}", word, re.ASCII):
        return int(word)
    if not re.fullmatch(rf"{REAL}|[+-]?inf|nan", word, re.ASCII):
        raise UserError(f"{where}: found {word!r} against a number, true or false")
    return float(word)


def pairs(where: str, given: str, known: Collection[str], what: str) -> Iterator[tuple[str, str]]:
    """Yield the words and the values of ``WORD=VALUE,WORD=VALUE``.

    Raises:
        UserError: a word that is not known, which is ``what``, or one twice.
    """
    seen: set[str] = set()
    for part in given.split(","):
        word, _, value = part.strip().partition("=")
        if word not in known:
            raise UserError(f"{where}: unknown {what} {word!r}{nearest(word, known)}")
        if word in seen:
            raise UserError(f"{where}: found {word!r} twice against once")
        seen.add(word)
        yield word, value


def _by_name(
    given: Mapping[str, Any] | Names, read: Callable[[str, Any], Value], form: str, twice: str
) -> Mapping[str, Value]:
    """Read what is given by name, as a mapping or as texts ``NAME=VALUE``.

    Args:
        given: what is read.
        read: reads one value, told its name.
        form: of the error about a text of another form.
        twice: how the error about a second value begins.
    """
    if isinstance(given, Mapping):
        return MappingProxyType({name: read(name, value) for name, value in given.items()})
    found: dict[str, Value] = {}
    for each in texts("", given):
        name, equals, value = each.rpartition("=")
        if not equals or not name:
            raise UserError(form.format(each))
        if name in found:
            raise UserError(f"{twice.format(name)} is given twice")
        found[name] = read(name, value)
    return MappingProxyType(found)
