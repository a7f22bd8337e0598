"""Granularity: into how many tasks a map scope is divided."""

from dataclasses import dataclass

from dfcompile.errors import UserError, nearest

_LARGEST = 10_000_000


@dataclass(frozen=True, slots=True)
class Granularity:
    """How many tasks the scopes become; the default is as many as the expansions declare.

    Attributes:
        max_tasks: a family has at most so many tasks, each of which does several iterations; None: one per iteration.
        split: a big single task is cut along its outermost parallel loops into at most so many tasks; None: not. Big
            is what has more than ``1 / split`` of the work of all tasks that stream with it, so that it bounds their
            time on that many processing elements, and more than ``1 / split^2`` of the work of the whole graph.
    """

    max_tasks: int | None = None
    split: int | None = None

    def __str__(self) -> str:
        knobs = (("max-tasks", self.max_tasks), ("split", self.split))
        return ",".join(f"{name}={count}" for name, count in knobs if count is not None) or "declared"


DECLARED = Granularity()


def parse_granularity(text: str) -> Granularity:
    """Parse ``declared``, ``max-tasks=N``, ``split=N`` or both of the latter with a comma.

    >>> parse_granularity("split=16")
    Granularity(max_tasks=None, split=16)

    Raises:
        UserError: naming the part that is wrong.
    """
    counts: dict[str, int] = {}
    parts = [part.strip() for part in text.split(",")]
    if parts == ["declared"]:
        return DECLARED
    for part in parts:
        name, _, number = part.partition("=")
        if name not in ("max-tasks", "split"):
            hint = nearest(name, ["declared", "max-tasks=N", "split=N"])
            raise UserError(f"granularity {text!r}: {part!r} against declared, max-tasks=N or split=N{hint}")
        if name in counts:
            raise UserError(f"granularity {text!r}: {name!r} given twice against once")
        if not number.isdecimal() or not number.isascii() or not 1 <= int(number[:20]) <= _LARGEST:
            raise UserError(f"granularity {text!r}: {name} {number!r} against a whole number from 1 to {_LARGEST}")
        counts[name] = int(number)
    return Granularity(counts.get("max-tasks"), counts.get("split"))
