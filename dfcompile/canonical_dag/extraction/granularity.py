"""Granularity: into how many tasks a map scope is divided."""

from collections.abc import Iterable
from functools import cached_property

from msgspec import Struct

from dfcompile.errors import UserError, nearest
from dfcompile.records import replace

_LARGEST = 10_000_000
_FORMS = "declared, max-tasks=N, split=N or [ORIGIN:]pieces=N"


class Granularity(Struct, frozen=True, dict=True):
    """How many tasks the scopes become; the default is as many as the expansions declare.

    Attributes:
        max_tasks: a family has at most so many tasks, each of which does several iterations; None: one per iteration.
        split: a big single task is cut along its outermost parallel loops into at most so many tasks; None: not. Big
            is what has more than ``1 / split`` of the work of all tasks that stream with it, so that it bounds their
            time on that many processing elements, and more than ``1 / split^2`` of the work of the whole graph.
        pieces: every scope is divided along its outermost parallel loops, declared as tasks or not, into at most so
            many tasks; None: as the other attributes say.
        own: the same for the scopes of single operators of the user, by origin.
    """

    max_tasks: int | None = None
    split: int | None = None
    pieces: int | None = None
    own: tuple[tuple[str, int | None], ...] = ()

    def __str__(self) -> str:
        knobs = (("max-tasks", self.max_tasks), ("split", self.split), ("pieces", self.pieces))
        given = [f"{name}={count}" for name, count in knobs if count is not None]
        single = (f"{origin}:{'declared' if count is None else f'pieces={count}'}" for origin, count in self.own)
        return ",".join((*(given or ["declared"]), *single)) if self.own else ",".join(given) or "declared"

    @cached_property
    def _by_origin(self) -> dict[str, int | None]:
        return dict(self.own)

    def pieces_of(self, origin: str) -> int | None:
        """Return into how many tasks the scopes of an operator are divided at most; None: no more is said of it."""
        return self._by_origin.get(origin, self.pieces)


DECLARED = Granularity()


def parse_granularity(text: str, own: Iterable[str] = ()) -> Granularity:
    """Parse ``declared``, ``pieces=N``, ``max-tasks=N``, ``split=N`` or both of the last with a comma.

    Args:
        text: of all operators.
        own: of single ones, such as ``conv1:pieces=64`` or ``conv1:declared``.

    >>> parse_granularity("split=16")
    Granularity(max_tasks=None, split=16, pieces=None, own=())

    Raises:
        UserError: naming the part that is wrong.
    """
    counts: dict[str, int] = {}
    parts = [part.strip() for part in text.split(",")]
    for part in () if parts == ["declared"] else parts:
        name, number = _knob(text, part)
        if name in counts:
            raise UserError(f"granularity {text!r}: {name!r} given twice against once")
        counts[name] = number
    if "pieces" in counts and len(counts) > 1:
        raise UserError(f"granularity {text!r}: pieces=N beside {', '.join(sorted(set(counts) - {'pieces'}))}")
    found = Granularity(counts.get("max-tasks"), counts.get("split"), counts.get("pieces"))
    return replace(found, own=tuple(_single(each) for each in own))


def _knob(text: str, part: str) -> tuple[str, int]:
    name, _, number = part.partition("=")
    if name not in ("max-tasks", "split", "pieces"):
        hint = nearest(name, ["declared", "max-tasks=N", "split=N", "pieces=N"])
        raise UserError(f"granularity {text!r}: {part!r} against {_FORMS}{hint}")
    if not number.isdecimal() or not number.isascii() or not 1 <= int(number[:20]) <= _LARGEST:
        raise UserError(f"granularity {text!r}: {name} {number!r} against a whole number from 1 to {_LARGEST}")
    return name, int(number)


def _single(text: str) -> tuple[str, int | None]:
    origin, _, part = text.rpartition(":")
    if part.strip() == "declared":
        return origin, None
    name, number = _knob(text, part.strip())
    if name != "pieces":
        raise UserError(f"granularity {text!r}: {name} of one operator against pieces=N or declared")
    return origin, number
