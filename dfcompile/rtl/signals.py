"""Names of the signals of a circuit, and rows of their numbers that grow evenly: a loop says all of them at once."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from dfcompile.rtl.circuit import Circuit

_OF_FAMILIES = (
    *("may_run", "ended", "pull", "available", "push", "space", "leave"),
    *("reads", "writes", "words", "stored", "places", "value", "place", "finals", "stores", "values", "circuit"),
)


def identifier(name: str, taken: set[str], *, prefix: str = "") -> str:
    """Return a name for Verilog like another one; it, and the names of its signals, are taken from then on."""
    plain = prefix + re.sub(r"\W", "_", name, flags=re.ASCII)
    plain = plain if plain[:1].isalpha() else f"n{plain}"
    found, number = plain, 2
    while not taken.isdisjoint(_names(found)):
        found, number = f"{plain}_{number}", number + 1
    taken.update(_names(found))
    return found


def _names(label: str) -> list[str]:
    return [label, *(f"{label}_{signal}" for signal in _OF_FAMILIES)]


class Signals:
    """Names of the signals: each family has vectors of its own, with a bit for each task, or for each port."""

    def __init__(self, circuit: Circuit) -> None:
        families, taken = circuit.families, set[str]()
        # No keyword and no other signal begins like these.
        self.labels = [*(identifier(family.scope, taken, prefix="t_") for family in families), "memory"]
        self._nodes = [*(family.first for family in families), circuit.tasks]
        self._pulls = [family.first_pull for family in families]
        self._pushes = [family.first_push for family in families]

    def node(self, number: int) -> tuple[int, int]:
        """Return the family of a node, of memory the one behind the last, and its number in it."""
        return _place(self._nodes, number)

    def pull(self, port: int) -> tuple[int, int]:
        """Return the family of a reading port, and its number in it."""
        return _place(self._pulls, port)

    def push(self, port: int) -> tuple[int, int]:
        """Return the family of a writing port, and its number in it."""
        return _place(self._pushes, port)

    def spans(self, nodes: Iterable[int]) -> list[tuple[int, int, int]]:
        """Return nodes as rows in one family: the family, how many follow one another, and the first one."""
        spans: list[tuple[int, int, int]] = []
        for family, number in map(self.node, nodes):
            if spans and spans[-1][0] == family and sum(spans[-1][1:]) == number:
                spans[-1] = (family, spans[-1][1] + 1, spans[-1][2])
            else:
                spans.append((family, 1, number))
        return spans

    def ended(self, family: int, width: int, first: str) -> str:
        """Return whether nodes that follow one another have ended, a bit for each."""
        return f"{self.labels[family]}_ended[{first}{f' +: {width}' if width > 1 else ''}]"


def _place(firsts: list[int], number: int) -> tuple[int, int]:
    place = bisect_right(firsts, number) - 1
    return place, number - firsts[place]


class RegularRows(Struct, frozen=True):
    """Some rows of numbers, one after another.

    Attributes:
        key: what all rows have in common.
        first: the first row.
        steps: by how much each of its numbers grows from row to row.
        count: of rows.
    """

    key: tuple[int, ...]
    first: tuple[int, ...]
    steps: tuple[int, ...]
    count: int

    def text(self, place: int) -> str:
        """Return a number of row ``i`` as an expression of Verilog."""
        first, step = self.first[place], self.steps[place]
        if not step or self.count == 1:
            return str(first)
        size = "i" if abs(step) == 1 else f"{abs(step)} * i"
        if step < 0:
            return f"{first} - {size}"
        return f"{first} + {size}" if first else size

    def part(self, place: int) -> str:
        """Return a number that grows by 1, of all rows at once, as a part of a vector of Verilog."""
        return str(self.first[place]) + (f" +: {self.count}" if self.count > 1 else "")

    def are_parts(self, places: Iterable[int]) -> bool:
        """Return whether some of the numbers grow by 1 from row to row."""
        return self.count == 1 or all(self.steps[place] == 1 for place in places)


def regular_rows(rows: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> Iterator[RegularRows]:
    """Cut rows, each a key and its numbers, where numbers do not go on evenly, or the key changes."""
    begin = 0
    while begin < len(rows):
        (key, first), end = rows[begin], begin + 1
        steps = (0,) * len(first)
        if end < len(rows) and rows[end][0] == key:
            steps = tuple(after - before for before, after in zip(first, rows[end][1], strict=True))
            following = (key, rows[end][1])
            while end < len(rows) and rows[end] == following:
                following = (key, tuple(map(int.__add__, following[1], steps)))
                end += 1
        yield RegularRows(key, first, steps, end - begin)
        begin = end
