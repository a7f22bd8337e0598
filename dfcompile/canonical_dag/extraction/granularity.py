"""Granularity: into how many tasks a map scope is divided."""

from collections.abc import Iterable, Iterator, Sequence
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
        rest: the same, by origin, for their scopes with less than half the iterations of the largest: short tasks of a
            product need no short tasks of what prepares its operands.
    """

    max_tasks: int | None = None
    split: int | None = None
    pieces: int | None = None
    own: tuple[tuple[str, int | None], ...] = ()
    rest: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        return ",".join(self.parts)

    @property
    def parts(self) -> tuple[str, ...]:
        """What is said of all operators, then of each single one, as `parse_granularity` reads it."""
        knobs = (("max-tasks", self.max_tasks), ("split", self.split), ("pieces", self.pieces))
        given = [f"{name}={count}" for name, count in knobs if count is not None]
        return (",".join(given) or "declared", *self._single())

    def _single(self) -> Iterator[str]:
        for origin in dict(self.own) | dict(self.rest):
            pieces, rest = self.pieces_of(origin), self.rest_of(origin)
            said = "declared" if pieces is None else f"pieces={pieces}"
            yield f"{origin}:{said}" + ("" if rest is None else f",rest={rest}")

    @cached_property
    def _by_origin(self) -> dict[str, int | None]:
        return dict(self.own)

    @cached_property
    def _rest_by_origin(self) -> dict[str, int]:
        return dict(self.rest)

    def pieces_of(self, origin: str, *, is_large: bool = True) -> int | None:
        """Return into how many tasks a scope of an operator is divided at most; None: no more is said of it.

        Args:
            origin: the operator.
            is_large: whether the scope has half the iterations of its largest at least.
        """
        pieces = self._by_origin.get(origin, self.pieces)
        return pieces if is_large else self._rest_by_origin.get(origin, pieces)

    def rest_of(self, origin: str) -> int | None:
        """Return what is said of the smaller scopes of an operator alone; None: they are like the others."""
        return self._rest_by_origin.get(origin)

    def but_for(self, origin: str, pieces: int | None, rest: int | None) -> "Granularity":
        """Return the same with other numbers for one operator."""
        own = tuple(pair for pair in self.own if pair[0] != origin)
        others = tuple(pair for pair in self.rest if pair[0] != origin)
        return replace(self, own=(*own, (origin, pieces)), rest=others if rest is None else (*others, (origin, rest)))


DECLARED = Granularity()


def parse_granularity(text: str, own: Iterable[str] = ()) -> Granularity:
    """Parse ``declared``, ``pieces=N``, ``max-tasks=N``, ``split=N`` or both of the last with a comma.

    Args:
        text: of all operators.
        own: of single ones, such as ``conv1:pieces=64``, ``conv1:pieces=64,rest=16`` or ``conv1:declared``.

    >>> parse_granularity("split=16")
    Granularity(max_tasks=None, split=16, pieces=None, own=(), rest=())

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
    single = [_single(each) for each in own]
    rest = tuple((origin, count) for origin, _, count in single if count is not None)
    return replace(found, own=tuple((origin, pieces) for origin, pieces, _ in single), rest=rest)


_OF_ALL = ("max-tasks", "split", "pieces")
_OF_ONE = (*_OF_ALL, "rest")


def _knob(text: str, part: str, known: Sequence[str] = _OF_ALL) -> tuple[str, int]:
    name, _, number = part.partition("=")
    if name not in known:
        hint = nearest(name, ["declared", *(f"{each}=N" for each in known)])
        raise UserError(f"granularity {text!r}: {part!r} against {_FORMS}{hint}")
    if not number.isdecimal() or not number.isascii() or not 1 <= int(number[:20]) <= _LARGEST:
        raise UserError(f"granularity {text!r}: {name} {number!r} against a whole number from 1 to {_LARGEST}")
    return name, int(number)


def _single(text: str) -> tuple[str, int | None, int | None]:
    origin, _, said = text.rpartition(":")
    if said.strip() == "declared":
        return origin, None, None
    names, counts = zip(*(_knob(text, part.strip(), _OF_ONE) for part in said.split(",")), strict=True)
    if names not in (("pieces",), ("pieces", "rest")):
        found = " and ".join(names)
        raise UserError(f"granularity {text!r}: {found} of one operator against pieces=N, pieces=N,rest=N or declared")
    return origin, counts[0], counts[1] if len(counts) > 1 else None
