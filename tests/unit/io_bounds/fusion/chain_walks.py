"""Chains by force: walks over every template, tile and set of held weights that count words present and moved.

Nothing here is shared with `dfcompile.io_bounds`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

Point = tuple[int, int]
Word = tuple[object, ...]


class Buffer:
    """Words that are present, how many there were at most, and how many moved."""

    def __init__(self) -> None:
        self.present: set[Word] = set()
        self.written: set[Word] = set()
        self.most = self.moved = 0

    def load(self, *words: Word) -> None:
        """Read words that are not present."""
        self.moved += len(set(words) - self.present)
        self.make(*words)

    def make(self, *words: Word) -> None:
        """Have words for nothing: results, and what is held anyway."""
        self.present |= set(words)
        self.most = max(self.most, len(self.present))

    def store(self, *words: Word) -> None:
        """Write words."""
        assert set(words) <= self.present
        self.moved += len(words)
        self.written |= set(words)

    def drop(self, *words: Word) -> None:
        """Forget words."""
        self.present -= set(words)


@dataclass(frozen=True, slots=True)
class Stage:
    """One layer or two: whether columns are taken and given, or the width of slices between two."""

    layers: int
    takes_columns: bool = False  # of two: for each slice anew
    gives_columns: bool = False  # of two: the result is added to in memory
    slice_width: int = 0


class Walk:
    """A segment with its ends in memory, or on the chip as a whole."""

    def __init__(self, rows: int, widths: Sequence[int], held: Sequence[bool], ends: tuple[bool, bool]) -> None:
        self.rows, self.widths, self.held, self.ends, self.buffer = rows, tuple(widths), tuple(held), ends, Buffer()
        self.last = len(widths) - 1
        everywhere = range(rows)
        for tensor, is_held in ((0, ends[0]), (self.last, ends[1])):
            if is_held:
                self.buffer.make(*self.whole(tensor, everywhere))

    def column(self, tensor: int, number: int, part: range) -> list[Word]:
        return [(tensor, row, number) for row in part]

    def whole(self, tensor: int, part: range) -> list[Word]:
        return [word for number in range(self.widths[tensor]) for word in self.column(tensor, number, part)]

    def load(self, tensor: int, number: int, part: range) -> None:
        if tensor == 0:
            self.buffer.load(*self.column(0, number, part))
        assert set(self.column(tensor, number, part)) <= self.buffer.present

    def forget(self, tensor: int, words: Sequence[Word]) -> None:
        if not (tensor == 0 and self.ends[0]) and not (tensor == self.last and self.ends[1]):
            self.buffer.drop(*words)

    def store(self, tensor: int, words: Sequence[Word]) -> None:
        if tensor == self.last and not self.ends[1]:
            self.buffer.store(*words)
            self.buffer.drop(*words)

    def multiply(self, layer: int, k: int, n: int, part: range) -> None:
        assert {(layer, row, k) for row in part} <= self.buffer.present
        weight: Word = ("w", layer, k, n)
        self.buffer.load(weight)
        self.buffer.make(*self.column(layer + 1, n, part))
        if not self.held[layer]:
            self.buffer.drop(weight)

    def weights(self, layer: int, taken: range, given: range) -> list[Word]:
        return [("w", layer, k, n) for k in taken for n in given]

    def row_tiles(self, stages: Sequence[Stage], tile: int) -> Point:
        for layer in range(self.last):
            if self.held[layer]:
                self.buffer.load(*self.weights(layer, range(self.widths[layer]), range(self.widths[layer + 1])))
        for start in range(0, self.rows, tile):
            part = range(start, min(start + tile, self.rows))
            layer = 0
            for stage in stages:
                (self.one if stage.layers == 1 else self.two)(layer, stage, part)
                layer += stage.layers
        return self.result()

    def result(self) -> Point:
        assert self.ends[1] or len(self.buffer.written) == self.rows * self.widths[-1]
        return self.buffer.most, self.buffer.moved

    def one(self, layer: int, stage: Stage, part: range) -> None:
        taken, given = range(self.widths[layer]), range(self.widths[layer + 1])
        if stage.gives_columns:
            for n in given:
                for k in taken:
                    self.multiply(layer, k, n, part)
                self.store(layer + 1, self.column(layer + 1, n, part))
        else:
            if not stage.takes_columns:
                for k in taken:
                    self.load(layer, k, part)
            for k in taken:
                self.load(layer, k, part)
                for n in given:
                    self.multiply(layer, k, n, part)
                if stage.takes_columns:
                    self.forget(layer, self.column(layer, k, part))
            self.store(layer + 1, self.whole(layer + 1, part))
        self.forget(layer, self.whole(layer, part))

    def two(self, layer: int, stage: Stage, part: range) -> None:
        middle, width = self.widths[layer + 1], stage.slice_width
        for start in range(0, middle, width):
            cut = range(start, min(start + width, middle))
            for k in range(self.widths[layer]):
                self.load(layer, k, part)
                for c in cut:
                    self.multiply(layer, k, c, part)
                if stage.takes_columns:
                    self.forget(layer, self.column(layer, k, part))
            self.add(layer + 1, cut, part, is_first=start == 0, in_memory=stage.gives_columns)
        self.forget(layer, self.whole(layer, part))
        if not stage.gives_columns:
            self.store(layer + 2, self.whole(layer + 2, part))

    def add(self, layer: int, cut: range, part: range, *, is_first: bool, in_memory: bool) -> None:
        """Multiply a slice of the operand, and add it to the result."""
        for n in range(self.widths[layer + 1]):
            column = self.column(layer + 1, n, part)
            if in_memory and not is_first:
                self.buffer.load(*column)
            for c in cut:
                self.multiply(layer, c, n, part)
            if in_memory:
                self.store(layer + 1, column)
        for c in cut:
            self.forget(layer, self.column(layer, c, part))

    def rows_inside(self, width: int, tile: int) -> Point:
        wide, middle, narrow = self.widths
        for start in range(0, middle, width):
            cut = range(start, min(start + width, middle))
            weights = [self.weights(0, range(wide), cut), self.weights(1, cut, range(narrow))]
            for layer in range(2):
                if self.held[layer]:
                    self.buffer.load(*weights[layer])
            for first in range(0, self.rows, tile):
                part = range(first, min(first + tile, self.rows))
                for k in range(wide):
                    self.load(0, k, part)
                    for c in cut:
                        self.multiply(0, k, c, part)
                    self.forget(0, self.column(0, k, part))
                self.add(1, cut, part, is_first=start == 0, in_memory=True)
            self.buffer.drop(*weights[0], *weights[1])
        return self.result()


def layer_points(rows: int, taken: int, given: int, ends: tuple[bool, bool] = (False, False)) -> Iterator[Point]:
    """Walk over all tilings and loop orders of one product; its weights stay by tiles or pass word by word."""
    extents = rows, taken, given
    for tiling in product(*(range(1, extent + 1) for extent in extents)):
        cuts = [
            [range(start, min(start + tile, extent)) for start in range(0, extent, tile)]
            for extent, tile in zip(extents, tiling, strict=True)
        ]
        for order in permutations(range(3)):
            for stays in (False, True):
                yield _tiled_layer(cuts, order, ends, weights_stay=stays)


def _tiled_layer(
    cuts: Sequence[Sequence[range]], order: Sequence[int], ends: tuple[bool, bool], *, weights_stay: bool
) -> Point:
    buffer = Buffer()
    whole = [range(parts[0].start, parts[-1].stop) for parts in cuts]
    if ends[0]:
        buffer.make(*(("x", m, k) for m in whole[0] for k in whole[1]))
    if ends[1]:
        buffer.make(*(("y", m, n) for m in whole[0] for n in whole[2]))
    kept: dict[str, set[Word]] = {"x": set(), "w": set(), "y": set()}
    begun: set[Word] = set()
    for place in product(*(range(len(cuts[rank])) for rank in order)):
        m, k, n = (cuts[rank][place[order.index(rank)]] for rank in range(3))
        if not ends[1]:
            tile: set[Word] = {("y", row, column) for row in m for column in n}
            if tile != kept["y"]:
                buffer.store(*sorted(kept["y"], key=str))
                buffer.drop(*kept["y"])
                kept["y"] = tile
        for name, box, is_held in (("x", (m, k), ends[0]), ("w", (k, n), not weights_stay)):
            tile = {(name, a, b) for a in box[0] for b in box[1]}
            if not is_held and tile != kept[name]:
                buffer.drop(*(kept[name] - tile))
                kept[name] = tile
        buffer.load(*kept["x"], *kept["w"])
        buffer.load(*(kept["y"] & begun))
        buffer.make(*kept["y"])
        begun |= kept["y"]
        for a, b in product(k, n):
            buffer.load(("w", a, b))
            if not weights_stay:
                buffer.drop(("w", a, b))
    buffer.store(*kept["y"])
    return buffer.most, buffer.moved


def segment_points(rows: int, widths: Sequence[int], ends: tuple[bool, bool] = (False, False)) -> Iterator[Point]:
    """Yield the points of a segment over all templates, tiles, slices and sets of weights."""
    if len(widths) == 2:
        yield from layer_points(rows, widths[0], widths[1], ends)
        return
    for stages in _stages(widths):
        yield from tiled_points(rows, widths, stages, ends)
    if len(widths) == 3:
        yield from flash_points(rows, widths, ends)


def tiled_points(
    rows: int, widths: Sequence[int], stages: Sequence[Stage], ends: tuple[bool, bool] = (False, False)
) -> Iterator[Point]:
    """Yield the points of stages over all row tiles and sets of weights."""
    for held in product((False, True), repeat=len(widths) - 1):
        yield from (Walk(rows, widths, held, ends).row_tiles(stages, tile) for tile in range(1, rows + 1))


def flash_points(rows: int, widths: Sequence[int], ends: tuple[bool, bool] = (False, False)) -> Iterator[Point]:
    """Yield the points of rows inside over all slices, row tiles and sets of weights."""
    for held in product((False, True), repeat=2):
        for width, tile in product(range(1, widths[1] + 1), range(1, rows + 1)):
            yield Walk(rows, widths, held, ends).rows_inside(width, tile)


def _stages(widths: Sequence[int]) -> Iterator[list[Stage]]:
    layers = len(widths) - 1
    for counts in _compositions(layers):
        choices = []
        first = 0
        for count in counts:
            is_first, is_last = first == 0, first + count == layers
            if count == 1:
                choices.append([Stage(1, takes_columns=is_first, gives_columns=is_last)])
            else:
                choices.append([
                    Stage(2, takes, gives, width)
                    for takes in ((False, True) if is_first else (False,))
                    for gives in ((False, True) if is_first and is_last else (False,))
                    for width in (range(1, widths[first + 1] + 1) if takes or gives else (1,))
                ])  # fmt: skip
            first += count
        yield from (list(stages) for stages in product(*choices))


def _compositions(layers: int) -> Iterator[tuple[int, ...]]:
    if layers == 0:
        yield ()
    for count in (1, 2):
        if count <= layers:
            yield from ((count, *rest) for rest in _compositions(layers - count))
