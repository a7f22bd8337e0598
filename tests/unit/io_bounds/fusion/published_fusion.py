"""The published way to fuse chains [huang24], layer by layer: what it prunes, compares and adds up. Sizes in words.

Rows of a layer are made by template; of rows of one buffer size the one stays that moves least if nothing is fused;
rows of neighbours fit if sizes of the tiles that are handed over are equal; layers that are not one group take their
tiles in turns, whatever stays of the others. `tests/data/orojenesis` has the outputs of the tool itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations, product

Point = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Row:
    """A mapping of a layer: words of its tiles, and what it moves of each tensor."""

    trips: int  # of row tiles
    tiles: tuple[int, int, int]  # operand, result, weights
    moved: tuple[int, int, int]
    is_held: bool  # all weights are in the buffer

    @property
    def size(self) -> int:
        """Words of the buffer."""
        return sum(self.tiles)

    @property
    def unfused(self) -> int:
        """Words that move if neighbours are not fused."""
        return sum(self.moved)


def divisors(extent: int) -> list[int]:
    """Return the divisors of a number."""
    return [tile for tile in range(1, extent + 1) if extent % tile == 0]


def template_rows(template: str, rows: int, taken: int, given: int) -> Iterator[Row]:
    """Yield the mappings of a layer under a template, tiles by divisors."""
    cuts_taken = template in {"allowk", "allowkn", "allownk", "allowk_flash"}
    cuts_given = template in {"allown", "allowkn", "allownk", "allown_flash"}
    for p in divisors(rows):
        for k in divisors(taken) if cuts_taken else [taken]:
            for n in divisors(given) if cuts_given else [given]:
                a, b, c = rows // p, taken // k, given // n
                operand, result, weights = rows * taken, rows * given, taken * given
                if (template == "allowkn" and b > 1) or (template == "allown_flash" and a > 1):
                    operand *= c
                if (template == "allownk" and c > 1) or (template == "allowk_flash" and a > 1):
                    result *= 2 * b - 1
                for words in {1, k * n}:
                    is_whole = words == weights
                    stays = is_whole or a == 1 or (template.endswith("flash") and words == k * n)
                    moved = operand, result, weights if stays else weights * a
                    yield Row(a, (p * k, p * n, words), moved, is_whole)


def layer_rows(rows: int, taken: int, given: int) -> Iterator[Row]:
    """Yield the mappings of a layer by itself, tiles by divisors, any loop order."""
    for p, k, n in product(divisors(rows), divisors(taken), divisors(given)):
        trips = {"p": rows // p, "k": taken // k, "n": given // n}
        for order in permutations(trips):  # innermost first
            real = [rank for rank in order if trips[rank] > 1]
            for words in {1, k * n}:
                stays = words == k * n
                operand = rows * taken * _visits(trips, real, "n")
                result = rows * given * (2 * _visits(trips, real, "k") - 1)
                weights = taken * given * (_visits(trips, real, "p") if stays else trips["p"])
                yield Row(trips["p"], (p * k, p * n, words), (operand, result, weights), words == taken * given)


def _visits(trips: dict[str, int], order: Sequence[str], rank: str) -> int:
    """Return how often a tile comes anew for a loop that does not index it: not at all if that is the innermost."""
    return 1 if order[:1] == [rank] else trips[rank]


def pruned(found: Sequence[Row], *, by_trips: bool) -> list[Row]:
    """Return one row per buffer size, and per number of row tiles: the one that moves least if nothing is fused."""
    best: dict[tuple[int, int], Row] = {}
    for row in found:
        key = row.trips if by_trips else 0, row.size
        if key not in best or row.unfused < best[key].unfused:
            best[key] = row
    return list(best.values())


def joined(layers: Sequence[Sequence[Row]]) -> list[Point]:
    """Return the front over all paths of rows that fit."""
    found = set()
    for path in _paths(layers):
        moved = sum(row.moved[2] for row in path) + path[0].moved[0] + path[-1].moved[1]
        found.add((_size(path), moved))
    kept: list[Point] = []
    for size, moved in sorted(found):
        if not kept or moved < kept[-1][1]:
            kept.append((size, moved))
    return kept


def _paths(layers: Sequence[Sequence[Row]]) -> Iterator[tuple[Row, ...]]:
    following: list[dict[tuple[int, int], list[Row]]] = []
    for rows in layers:
        fitting: dict[tuple[int, int], list[Row]] = {}
        for row in rows:
            fitting.setdefault((row.trips, row.tiles[0]), []).append(row)
        following.append(fitting)

    def extended(path: tuple[Row, ...]) -> Iterator[tuple[Row, ...]]:
        if len(path) == len(layers):
            yield path
            return
        for row in following[len(path)].get((path[-1].trips, path[-1].tiles[1]), ()):
            yield from extended((*path, row))

    for row in layers[0]:
        yield from extended((row,))


def _size(path: Sequence[Row]) -> int:
    """Return the most of groups of layers whose weights are all held, and of other layers."""
    sizes = []
    group: list[Row] = []
    for row in (*path, None):
        if row is not None and row.is_held:
            group.append(row)
            continue
        if group:
            inside = sum(each.tiles[1] for each in group[:-1])
            sizes.append(sum(each.tiles[2] for each in group) + group[0].tiles[0] + group[-1].tiles[1] + inside)
            group = []
        if row is not None:
            sizes.append(row.size)
    return max(sizes)


def tiled(rows: int, widths: Sequence[int], templates: Sequence[str], *, prunes: bool = True) -> list[Point]:
    """Return the published front of a chain under the templates of its layers; rows inside are not pruned by trips."""
    layers = [
        list(template_rows(template, rows, taken, given))
        for template, (taken, given) in zip(templates, pairwise(widths), strict=True)
    ]
    by_trips = not templates[0].endswith("flash")
    return joined([pruned(found, by_trips=by_trips) for found in layers] if prunes else layers)


def untiled(rows: int, widths: Sequence[int], size: int, *, prunes: bool = True) -> int | None:
    """Return the published words of a chain whose tensors are held whole; each layer chooses which, by itself."""
    last = len(widths) - 2
    total = 0
    for number, (taken, given) in enumerate(pairwise(widths)):
        found = list(layer_rows(rows, taken, given))
        best = None
        for operand, result in ((False, True), (True, False), (True, True)):
            if (operand and number == 0) or (result and number == last):
                continue
            for row in pruned(found, by_trips=False) if prunes else found:
                tiles = rows * taken if operand else row.tiles[0], rows * given if result else row.tiles[1]
                moved = row.unfused - row.moved[0] * operand - row.moved[1] * result
                if sum(tiles) + row.tiles[2] <= size and (best is None or moved < best):
                    best = moved
        if best is None:
            return None
        total += best
    return total
