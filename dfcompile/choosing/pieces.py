"""Into how many pieces a map scope is divided so that its tasks fill the processing elements."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.canonical_dag.extraction.families import divide
from dfcompile.canonical_dag.extraction.scopes import MapScope
from dfcompile.errors import UserError
from dfcompile.records import replace

_MOST_PER_ELEMENT = 16  # pieces: more are more to schedule, and hardly fill better
_FEWER = 4  # pieces, one in so many elements: where memory bounds the time they need less of it
_SLACK = (100, 20)  # fewer pieces may take longer by one part in so many


def fitting_pieces(scopes: Sequence[MapScope], pes: int) -> tuple[int, ...]:
    """Return the numbers of pieces in which the largest of some scopes takes least time, fewer that nearly do, and few.

    Tasks run in rounds of P; all rounds take as long as the longest task.

    Args:
        scopes: of an operator.
        pes: number of processing elements P.
    """
    largest = max(scopes, key=lambda scope: prod(scope.extents))
    return _fitting(replace(largest, name="", origin="", kernel=None, reads=()), pes)


@lru_cache(4096)
def _fitting(scope: MapScope, pes: int) -> tuple[int, ...]:
    times: dict[int, int] = {}  # of so many tasks
    for pieces in dict.fromkeys(_numbers(scope.extents, _MOST_PER_ELEMENT * pes)):
        try:
            (family,) = divide((scope,), Granularity(pieces=pieces))
        except UserError:  # more tasks than a canonical DAG can hold
            continue
        iterations = family.iterations()
        times.setdefault(family.members, -(-family.members // pes) * max(iterations.whole, iterations.last))
    least = min(times.values(), default=0)
    found = [min(tasks for tasks, time in times.items() if time * part <= least * (part + 1)) for part in _SLACK]
    return tuple(dict.fromkeys((*found, max(pes // _FEWER, 1)))) if times else ()


def _numbers(extents: Sequence[int], most: int) -> Iterator[int]:
    """Yield numbers of pieces that cut whole outer loops, and the one behind them in chunks of every size."""
    outer = 1
    for extent in extents:
        if outer > most:
            return
        size = 1
        while size <= extent:
            chunks = -(-extent // size)
            if outer * chunks <= most:
                yield outer * chunks
            size = max(size + 1, -(-extent // (chunks - 1)) if chunks > 1 else extent + 1)
        outer *= extent
