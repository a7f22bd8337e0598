"""A kind of case: how one is drawn, and how it is judged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tests.fuzz.draw import Array, Draw
from tests.fuzz.outcome import Outcome

ShowPhase: TypeAlias = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Case:
    """A file and, if it is a model, inputs by name.

    Attributes:
        suffix: of the file.
        content: of the file.
        feeds: inputs that fit if the file was not damaged.
        plain: an equal model without functions and fixed inputs; empty: the file itself.
        fixed: names of the inputs that dfcompile is told the value of.
        expected: what the judge has to find, as JSON.
    """

    suffix: str
    content: bytes
    feeds: Mapping[str, Array] = field(default_factory=dict)
    plain: bytes = b""
    fixed: tuple[str, ...] = ()
    expected: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """How cases of a kind are drawn and judged.

    Attributes:
        draw: a case; the same one from the same seed.
        judge: gives the outcome of a file; it is told the case, goes on drawing, and says which part it begins.
    """

    draw: Callable[[Draw], Case]
    judge: Callable[[Path, Case, Draw, ShowPhase], Outcome]
