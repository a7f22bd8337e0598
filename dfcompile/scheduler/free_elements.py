"""When processing elements get free, those together that do at once."""

from bisect import bisect_right, insort
from collections.abc import Iterator

_FEW = 16  # one element in so many is put in its place faster than all are sorted


class FreeElements:
    """Processing elements by the cycle from which on they are free."""

    def __init__(self, count: int) -> None:
        """Begin with elements that are free at once."""
        self._cycles = [0]  # in order
        self._at = {0: list(range(count))}  # the elements of each cycle, in order

    @property
    def first(self) -> int:
        """The cycle from which on the first one is free."""
        return self._cycles[0]

    def __iter__(self) -> Iterator[int]:
        """Yield the cycle of each, the first one first."""
        return (cycle for cycle in self._cycles for _ in self._at[cycle])

    def take(self, cycle: int, most: int = 1) -> list[int]:
        """Take out elements that are free by a cycle and were busy as long as any, those of highest number first."""
        place = bisect_right(self._cycles, cycle) - 1
        at = self._cycles[place]
        elements = self._at[at]
        taken = elements[: -most - 1 : -1]
        if len(taken) == len(elements):
            del self._cycles[place], self._at[at]
        else:
            del elements[-most:]
        return taken

    def put(self, cycle: int, elements: list[int]) -> None:
        """Let elements be free from a cycle on."""
        known = self._at.get(cycle)
        if known is None:
            insort(self._cycles, cycle)
            self._at[cycle] = sorted(elements)
        elif len(elements) * _FEW < len(known) or len(elements) == 1:
            for element in elements:
                insort(known, element)
        else:
            known += elements
            known.sort()
