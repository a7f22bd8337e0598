"""Rows of numbers that grow evenly, so that a loop says all of them at once."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct


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
