"""Files of choices: options of ``--expand`` and ``--granularity``, a line for each number of processing elements."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.options.numbers import count
from dfcompile.options.readers import expansions, granularities, micro_batches
from dfcompile.options.words import ExpansionRule, Granularities, MicroBatches

FORM: Final = "--pes P --expand [ORIGIN:]OP=NAME … --granularity NAME … --micro-batches NAME=SIZE[/GROUPS]"
_COMMENT: Final = "#"
_PLAIN: Final = re.compile(r"[\w@%+=:./-]*(?:\{[^,{}]*\})?")  # what a shell takes as it is


class SavedChoice(Struct, frozen=True):
    """The choice of one number of processing elements.

    Attributes:
        rules: of ``--expand``, each with one name; none: as published.
        granularity: of the tasks.
        micro_batches: in which the model runs.
    """

    rules: tuple[ExpansionRule, ...]
    granularity: Granularities
    micro_batches: MicroBatches


def choice_options(expand: Sequence[str], granularity: Sequence[str], micro_batches: Sequence[str] = ()) -> str:
    """Return the options that give a choice again, as a shell reads them.

    >>> choice_options(["MatMul=split-k{parts=2}"], ["pieces=16"])
    '--expand MatMul=split-k{parts=2} --granularity pieces=16'
    """
    given = {"--expand": expand, "--granularity": granularity, "--micro-batches": micro_batches}
    words = [word for flag, values in given.items() for value in values for word in (flag, value)]
    return " ".join(word if _PLAIN.fullmatch(word) else shlex.quote(word) for word in words)


def choice_text(model: str, options: Mapping[int, str]) -> str:
    """Return a file of choices.

    Args:
        model: name of the model, in one line.
        options: of each number of processing elements, as `choice_options` writes them.
    """
    head = f"{_COMMENT} choice of dfcompile for {model}: --choice takes this file\n"
    return head + "".join(f"--pes {pes} {said}\n" for pes, said in options.items())


def parse_choices(text: str, file: Path) -> Mapping[int, SavedChoice]:
    """Read the text of a file of choices, by number of processing elements.

    Raises:
        UserError: a line has another form; the message names file and line.
    """
    choices: dict[int, SavedChoice] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith(_COMMENT):
            pes, choice = _choice(f"{file}:{number}", line)
            if pes in choices:
                raise UserError(f"{file}:{number}: {pes} processing elements are given twice")
            choices[pes] = choice
    return MappingProxyType(choices)


def _choice(where: str, line: str) -> tuple[int, SavedChoice]:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UserError(f"{where}: found an open quotation against {FORM}") from error
    given: dict[str, list[str]] = {"--pes": [], "--expand": [], "--granularity": [], "--micro-batches": []}
    if len(words) % 2 or not given.keys() >= set(words[::2]):
        raise UserError(f"{where}: found other words against {FORM}")
    for flag, value in zip(words[::2], words[1::2], strict=True):
        given[flag].append(value)
    pes, expand, granularity, parts = given.values()
    if len(pes) != 1:
        raise UserError(f"{where}: found {len(pes)} times --pes against once ({FORM})")
    if len(parts) > 1:
        raise UserError(f"{where}: found {len(parts)} times --micro-batches against once ({FORM})")
    try:
        rules = expansions("--expand", expand).rules
        (said,) = parts or ("whole",)
        tasks, batches = granularities("--granularity", granularity), micro_batches("--micro-batches", said)
        found = count("--pes", pes[0]), SavedChoice(rules, tasks, batches)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    for rule in rules:
        if len(rule.names) > 1:
            raise UserError(f"{where}: --expand {rule.key}: found {len(rule.names)} names against one")
    return found
