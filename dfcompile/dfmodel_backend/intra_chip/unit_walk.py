"""Cores and memory units (PMUs) for the kernels of one configuration: exact, a walk along its tensors.

A tensor between two kernels of the configuration takes as many PMUs as the larger of what its two ends need, so that
their splits depend on each other. The walk goes through the kernels in topological order. It keeps, per number of
cores so far, the fewest PMUs, apart for each combination of what kernels with unread outputs need; of a kernel only
splits count of which neither lanes nor stages can be fewer. Needs below the size of the tensor are all the same, so
that few combinations remain.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit
from dfcompile.records import replace

IMPOSSIBLE = 1 << 60

Row = npt.NDArray[np.int64]  # fewest PMUs, by cores beyond the fewest
Key = tuple[int, ...]  # what each kernel with unread outputs needs for each of them


class Choice(Struct, frozen=True):
    """One split of one kernel.

    Attributes:
        split: of cores.
        own: PMUs of its tensors at the border of the configuration, of its weights and of what the design adds.
        given: PMUs that each tensor needs which it writes inside.
        taken: PMUs that each tensor needs which it reads inside.
    """

    split: CoreSplit
    own: int
    given: int
    taken: tuple[int, ...]


class Stop(Struct, frozen=True):
    """One kernel on the walk.

    Attributes:
        choices: its splits.
        reads: per tensor that it reads inside, the number of the stop that writes it and the PMUs of its size.
    """

    choices: tuple[Choice, ...]
    reads: tuple[tuple[int, int], ...]


class Walk:
    """The kernels of a configuration in topological order, with the limits of the chip."""

    def __init__(self, stops: list[Stop], cores: int, pmus: int) -> None:
        self._stops = _without_worse(stops)
        self._pmus = pmus
        self._fewest = [min(choice.split.cores for choice in stop.choices) for stop in self._stops]
        self._spare = cores - sum(self._fewest)
        least = [_least_pmus(self._stops, stop) for stop in self._stops]
        self._rest = [sum(least[number + 1 :]) for number in range(len(least))]
        self._may_fit = self._spare >= 0 and sum(least) <= pmus
        last = {writer: number for number, stop in enumerate(stops) for writer, _ in stop.reads}
        self._open = [
            [writer for writer in range(number) if last.get(writer, -1) >= number] for number in range(len(stops) + 1)
        ]

    def is_possible(self) -> bool:
        """Return whether some choice keeps both limits."""
        if not self._may_fit:
            return False
        smallest = [min(stop.choices, key=lambda one: (one.split.cores, one.own)) for stop in self._stops]
        taken = sum(
            choice.own + self._read(number, choice, [smallest[writer].given for writer, _ in stop.reads])
            for number, (stop, choice) in enumerate(zip(self._stops, smallest, strict=True))
        )
        if taken <= self._pmus or all(len(stop.choices) == 1 for stop in self._stops):
            return taken <= self._pmus
        return bool(self._layers()[-1])

    def fewest_units(self) -> tuple[CoreSplit, ...] | None:
        """Return the splits of fewest cores and PMUs together, then of fewest cores; None if none keep the limits."""
        layers = self._layers() if self._may_fit else [{}]
        if not layers[-1]:
            return None
        row = layers[-1][()]
        return self._trace(layers, int(np.argmin(row + np.arange(len(row)))))

    def _read(self, number: int, choice: Choice, given: list[int]) -> int:
        """Return the PMUs of tensors that a kernel reads inside, given what their writers need."""
        sizes = (size for _, size in self._stops[number].reads)
        return sum(max(size, need, own) for size, need, own in zip(sizes, given, choice.taken, strict=True))

    def _moves(self, number: int, key: Key) -> Iterator[tuple[Choice, int, int, Key]]:
        """Yield per choice of a kernel the PMUs it adds, its cores beyond the fewest, and the state after it."""
        needs = dict(zip(self._open[number], key, strict=True))
        stop = self._stops[number]
        given = [needs[writer] for writer, _ in stop.reads]
        for choice in stop.choices:
            added = choice.own + self._read(number, choice, given)
            needs[number] = choice.given
            reached = tuple(needs[writer] for writer in self._open[number + 1])
            yield choice, added, choice.split.cores - self._fewest[number], reached

    def _layers(self) -> list[dict[Key, Row]]:
        """Return the states before the first kernel and after each; the last one has the key ``()``, or none."""
        start = np.full(self._spare + 1, IMPOSSIBLE, np.int64)
        start[0] = 0
        layers: list[dict[Key, Row]] = [{(): start}]
        for number, rest in enumerate(self._rest):
            following: dict[Key, Row] = {}
            for key, row in layers[-1].items():
                for _, added, extra, reached in self._moves(number, key):
                    if extra > self._spare:
                        continue
                    target = following.setdefault(reached, np.full(self._spare + 1, IMPOSSIBLE, np.int64))
                    np.minimum(target[extra:], row[: len(row) - extra] + added, out=target[extra:])
            for row in following.values():
                row[row + rest > self._pmus] = IMPOSSIBLE
            layers.append({key: row for key, row in following.items() if row.min() < IMPOSSIBLE})
        return layers

    def _trace(self, layers: list[dict[Key, Row]], extra: int) -> tuple[CoreSplit, ...]:
        """Return the split of each kernel that leads to the last state with so many cores beyond the fewest."""
        key: Key = ()
        splits: list[CoreSplit] = []
        for number in range(len(self._stops) - 1, -1, -1):
            value = int(layers[number + 1][key][extra])
            key, extra, split = next(
                (before, extra - more, choice.split)
                for before, row in layers[number].items()
                for choice, added, more, reached in self._moves(number, before)
                if reached == key and more <= extra and int(row[extra - more]) + added == value
            )
            splits.append(split)
        return tuple(reversed(splits))


def _least_pmus(stops: list[Stop], stop: Stop) -> int:
    """Return PMUs that a kernel adds whatever is chosen."""
    least = min(choice.own for choice in stop.choices)
    for number, (writer, size) in enumerate(stop.reads):
        given = min(choice.given for choice in stops[writer].choices)
        least += max(size, given, min(choice.taken[number] for choice in stop.choices))
    return least


def _without_worse(stops: list[Stop]) -> list[Stop]:
    """Raise needs to what their tensors take anyway, and leave out choices that others beat in everything."""
    floors: dict[int, int] = {}  # what every tensor takes that a kernel writes, by the kernel
    for stop in stops:
        for number, (writer, size) in enumerate(stop.reads):
            takes = max(size, min(choice.taken[number] for choice in stop.choices))
            floors[writer] = min(floors.get(writer, takes), takes)
    needed = [min(choice.given for choice in stop.choices) for stop in stops]
    cleaned = []
    for place, stop in enumerate(stops):
        choices: list[Choice] = []
        for choice in stop.choices:
            taken = tuple(
                max(need, size, needed[writer]) for need, (writer, size) in zip(choice.taken, stop.reads, strict=True)
            )
            given = max(choice.given, floors[place]) if place in floors else 0
            raised = replace(choice, given=given, taken=taken)
            if not any(_is_as_good(other, raised) for other in choices):
                choices = [other for other in choices if not _is_as_good(raised, other)]
                choices.append(raised)
        cleaned.append(Stop(tuple(choices), stop.reads))
    return cleaned


def _is_as_good(one: Choice, other: Choice) -> bool:
    return (
        one.split.cores <= other.split.cores
        and one.own <= other.own
        and one.given <= other.given
        and all(here <= there for here, there in zip(one.taken, other.taken, strict=True))
    )
