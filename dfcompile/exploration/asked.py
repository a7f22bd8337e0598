"""What is asked of an exploration, and the texts of the command line for it."""

import re

from msgspec import Struct

from dfcompile.canonical_dag.extraction.granularity import Granularity
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.errors import UserError, nearest
from dfcompile.exploration.objectives import KB_BYTES, Machine, Objective
from dfcompile.options import DEFAULT_TRIES, ExpansionRule
from dfcompile.options.numbers import REAL, read_real
from dfcompile.scheduler.options import QUICK_PARTITION

_UNITS = {"": KB_BYTES, "b": 1, "kb": KB_BYTES, "mb": KB_BYTES**2, "gb": KB_BYTES**3}
_LARGEST_BYTES = 2**50
TASKS_PER_TRY = 8_000
MOST_TASKS = 2**17


class Asked(Struct, frozen=True):
    """The space that is explored, and how long.

    Attributes:
        pes: numbers of processing elements.
        memories: bytes of on-chip memory.
        objectives: what is to be small.
        rules: of the user; what they name is chosen from them, everything else is as by default. None: all operators
            are chosen from all their expansions.
        granularities: of the tasks.
        system: whose prices and powers count.
        partition: name of the partitioner.
        tries: schedules that are made at most, one of more than `TASKS_PER_TRY` tasks counts as several.
    """

    pes: tuple[int, ...]
    memories: tuple[int, ...]
    objectives: tuple[Objective, ...]
    rules: tuple[ExpansionRule, ...]
    granularities: tuple[Granularity, ...]
    system: System
    partition: str = QUICK_PARTITION
    tries: int = DEFAULT_TRIES

    def machine(self, pes: int, memory_bytes: int) -> Machine:
        """Return the machine of a number of processing elements and an amount of memory."""
        return Machine(pes, memory_bytes, self.system.one_chip.with_cores(pes))


def parse_memories(text: str) -> tuple[int, ...]:
    """Read amounts of memory as bytes; without a unit they are in kB of 1,024 bytes.

    Raises:
        UserError: another form, nothing or too much, or one amount twice.

    >>> parse_memories("256,1MB")
    (262144, 1048576)
    """
    found = tuple(_memory(word.strip()) for word in text.split(","))
    if len(set(found)) < len(found):
        raise UserError(f"--on-chip-memory: found {text!r} against each amount once")
    return found


def _memory(word: str) -> int:
    match = re.fullmatch(rf"({REAL}) ?([A-Za-z]*)", word, re.ASCII)
    if match is None or match[2].lower() not in _UNITS:
        raise UserError(f"--on-chip-memory: found {word!r} against a number of kB, or with a unit B, kB, MB or GB")
    exact = (read_real(match[1]) or 0) * _UNITS[match[2].lower()]
    size = int(exact)
    if size != exact or not 1 <= size <= _LARGEST_BYTES:
        raise UserError(f"--on-chip-memory: found {word!r} against 1 B to {_LARGEST_BYTES // KB_BYTES**3} GB")
    return size


def parse_objectives(text: str) -> tuple[Objective, ...]:
    """Read what is to be small, such as ``makespan,io,area``.

    Raises:
        UserError: something else, or one objective twice.
    """
    known = [objective.value for objective in Objective]
    found: list[Objective] = []
    for word in (part.strip() for part in text.split(",")):
        if word not in known:
            raise UserError(f"--objective {word!r}: unknown{nearest(word, known)}")
        if Objective(word) in found:
            raise UserError(f"--objective: {word} is given twice")
        found.append(Objective(word))
    return tuple(found)
