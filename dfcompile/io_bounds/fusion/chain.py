"""Chains of products: what stays on the chip between layers, whole tensors or tiles of rows by published templates."""

from collections.abc import Iterator, Sequence
from enum import StrEnum, unique
from itertools import pairwise, product
from typing import Final, assert_never

import numpy as np
from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.io_bounds.curve import Curve, Int64, Rules, check_words, front, least, tile_sizes, total, trips_of


@unique
class Template(StrEnum):
    """How a layer takes its operand and gives its result, of one row tile [huang24].

    A layer that takes or gives columns hands over slices of them to its neighbour in the chain; to and from memory
    columns pass one by one.
    """

    BASE = "base"  # both whole
    ALLOWK = "allowk"  # takes columns, adds to a whole result
    ALLOWN = "allown"  # takes all, gives columns
    ALLOWKN = "allowkn"  # takes columns for each slice that it gives: its operand is read once per slice
    ALLOWNK = "allownk"  # gives columns for each slice that it takes: its result is added to in memory
    ALLOWN_FLASH = "allown_flash"  # the slices that it gives are the outer loop, row tiles run inside
    ALLOWK_FLASH = "allowk_flash"  # the same of the slices that it takes


_GIVES = frozenset({Template.ALLOWN, Template.ALLOWKN})
FLASH = (Template.ALLOWN_FLASH, Template.ALLOWK_FLASH)


class Segment(Struct, frozen=True):
    """Consecutive layers between which row tiles never leave the buffer.

    Attributes:
        rows: of all tensors.
        widths: columns of the operand and of each layer's result; at least three.
        held: whether the operand and the result of the segment are on the chip as a whole.
    """

    rows: int
    widths: tuple[int, ...]
    held: tuple[bool, bool] = (False, False)

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.widths) - 1

    @property
    def weights(self) -> tuple[int, ...]:
        """Words of the weights of each layer."""
        return tuple(a * b for a, b in pairwise(self.widths))

    def ends(self) -> tuple[int, int]:
        """Return the words of the operand and of the result that move at least."""
        first, last = (not is_held for is_held in self.held)
        return self.rows * self.widths[0] * first, self.rows * self.widths[-1] * last


class _Phase(Struct, frozen=True):
    """What the buffer has of a row tile while a layer computes.

    Attributes:
        layer: that computes.
        columns: that are present, whatever slices are.
        slices: 1 with a slice between two layers beside, whose width is free; else 0.
        is_later: the slice is not the first one; there is no such phase where one slice is all.
    """

    layer: int
    columns: int
    slices: int = 0
    is_later: bool = False


def template_curve(segment: Segment, templates: Sequence[Template], rules: Rules) -> Curve:
    """Return the curve of a segment over row tiles, slices and sets of weights that are held.

    Weights are held throughout, or pass word by word, once per row tile; with rows inside, slices of them are held for
    all rows, or pass. What is present at once is added up, all layers' held weights included.

    Args:
        segment: the layers.
        templates: of each layer, one of `sequences` or `FLASH`.
        rules: how traffic is counted.
    """
    points = _rows_inside(segment, rules) if tuple(templates) == FLASH else _row_tiles(segment, templates, rules)
    # Of its ends those that are on the chip as a whole.
    held_words = segment.rows * (segment.widths[0] + segment.widths[-1]) - sum(segment.ends())
    return least([front(sizes, traffic) for sizes, traffic in points]).shifted(held_words)


def useful_sequences(segment: Segment) -> Iterator[tuple[Template, ...]]:
    """Yield `sequences`, but those that hold no less than another one that moves the same, in no layer."""
    kinds: dict[tuple[bool, bool], list[tuple[tuple[int, ...], tuple[Template, ...]]]] = {}
    for templates in sequences(segment.layers):
        if templates == FLASH:
            yield templates
            continue
        columns = tuple(phase.columns + phase.slices for phase in _phases(segment, templates))
        others = kinds.setdefault((Template.ALLOWKN in templates, Template.ALLOWNK in templates), [])
        if any(_covers(known, columns) for known, _ in others):
            continue
        others[:] = [each for each in others if not _covers(columns, each[0])]
        others.append((columns, templates))
    for found in kinds.values():
        yield from (templates for _, templates in found)


def _covers(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    return all(a <= b for a, b in zip(small, large, strict=True))


def sequences(layers: int) -> Iterator[tuple[Template, ...]]:
    """Yield all ways to take layers one by one, or two with slices between them; the first and the last are ends."""
    for stages in _stages(layers):
        found = [template for count in stages for template in _OF_STAGE[count]]
        if found[0] is Template.BASE:
            found[0] = Template.ALLOWK
        if found[-1] is Template.BASE:
            found[-1] = Template.ALLOWN
        yield tuple(found)
        if stages[0] == 2:
            yield (Template.ALLOWKN, *found[1:])
        if stages[0] == 2 == layers:
            yield (Template.ALLOWN, Template.ALLOWNK)
            yield (Template.ALLOWKN, Template.ALLOWNK)
    if layers == len(FLASH):
        yield FLASH


# Of a layer alone, and of two with slices between them.
_OF_STAGE: Final = {1: (Template.BASE,), 2: (Template.ALLOWN, Template.ALLOWK)}


def _stages(layers: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to take layers one by one or two at once, as numbers of layers."""
    if not layers:
        yield ()
    for count in _OF_STAGE:
        if count <= layers:
            yield from ((count, *rest) for rest in _stages(layers - count))


def _phases(segment: Segment, templates: Sequence[Template]) -> Iterator[_Phase]:
    """Yield what is present of a row tile, layer by layer.

    Of two layers with slices between them the first one's operand stays until the last slice is made, unless it is
    read anew, and the second one's result from the first slice on, unless it is added to in memory.
    """
    last = segment.layers - 1
    widths = list(segment.widths)  # columns beside what is held as a whole
    widths[0] *= not segment.held[0]
    widths[-1] *= not segment.held[1]
    layer = 0
    while layer <= last:
        first, second = templates[layer], templates[min(layer + 1, last)]
        if first in _GIVES and layer < last:
            taken, result = widths[layer], widths[layer + 2]
            rereads, revisits = first is Template.ALLOWKN, second is Template.ALLOWNK
            makes = (min(1, taken) if rereads else taken) + (0 if revisits else result)
            uses = (0 if rereads else taken) + (min(1, result) if revisits else result)
            slices = int(rereads or revisits)  # else a slice is one column: more of them save nothing
            if rereads and not revisits:  # while the first slice is made, nothing is there of the result
                yield _Phase(layer, min(1, taken), slices)
            yield _Phase(layer, makes + 1 - slices, slices, is_later=rereads and not revisits)
            yield _Phase(layer + 1, uses + 1 - slices, slices)
            layer += 2
        else:
            taken = min(1, widths[0]) if layer == 0 and first is Template.ALLOWK else widths[layer]
            given = min(1, widths[-1]) if layer == last and first is Template.ALLOWN else widths[layer + 1]
            yield _Phase(layer, taken + given)
            layer += 1


def _row_tiles(segment: Segment, templates: Sequence[Template], rules: Rules) -> Iterator[tuple[Int64, Int64]]:
    """Yield sizes and traffic for each set of held weights: all layers run for a row tile before the next one."""
    rereads, revisits = Template.ALLOWKN in templates, Template.ALLOWNK in templates
    slices = tile_sizes(segment.widths[1], rules.tiles) if rereads or revisits else np.ones(1, dtype=np.int64)
    count = trips_of(segment.widths[1], slices)
    tiles = tile_sizes(segment.rows, rules.tiles)[:, None]
    phases = tuple(_phases(segment, templates))
    operand, result = segment.ends()
    once = np.ones_like(count)
    ends = operand * (count if rereads else once) + rules.result_words(result * (count if revisits else once), result)
    for held in product((False, True), repeat=segment.layers):
        kept = sum(words for words, is_held in zip(segment.weights, held, strict=True) if is_held)
        widest = np.zeros((len(tiles), len(slices)), dtype=np.int64)
        for phase in phases:
            cut = np.minimum(slices, segment.widths[1] - slices) if phase.is_later else slices
            present = tiles * (phase.columns + phase.slices * cut) + (not held[phase.layer])
            widest = np.maximum(widest, np.where(cut > 0, present, 0))
        streamed = (sum(segment.weights) - kept) * trips_of(segment.rows, tiles)
        yield widest + kept, ends + kept + streamed


def _rows_inside(segment: Segment, rules: Rules) -> Iterator[tuple[Int64, Int64]]:
    """Yield sizes and traffic of two layers with column slices outside and row tiles inside.

    Weights of a slice stay while all rows pass, or pass themselves, once per row tile. The operand is read once per
    slice, column by column; the result is added to in memory, column by column.
    """
    wide, middle, narrow = segment.widths
    slices = tile_sizes(middle, rules.tiles)
    count = trips_of(middle, slices)
    operand, result = segment.ends()
    ends = operand * count + rules.result_words(result * count, result)
    for held in product((False, True), repeat=2):
        tiles = (np.ones(1, dtype=np.int64) if all(held) else tile_sizes(segment.rows, rules.tiles))[:, None]
        trips = trips_of(segment.rows, tiles)
        kept = slices * (wide * held[0] + narrow * held[1])
        makes = tiles * (slices + (not segment.held[0])) + (not held[0])
        uses = tiles * (slices + (not segment.held[1])) + (not held[1])
        weights = sum(words * (1 if is_held else trips) for words, is_held in zip(segment.weights, held, strict=True))
        yield kept + np.maximum(makes, uses), ends + weights


MOST_LAYERS = 8  # of a chain: 2 ** layers sets of weights that are held, for each way to take the layers


@unique
class Fusion(StrEnum):
    """What of a chain may stay on the chip [huang24]; the last one is all of it, joined."""

    UNFUSED = "unfused"  # nothing
    UNTILED = "untiled"  # whole tensors between layers, each for both its layers or for none
    RELAX_IO = "relax_io"  # row tiles through all layers; the first takes columns, the last gives columns
    RELAX_IO_KN = "relax_io_kn"  # the same, with slices between the first two layers
    FLASH = "flash"  # the first layer's slices outside, the last one's too, row tiles inside
    SEGMENTED = "segmented"  # cut anywhere, tensors held or spilled there, any template between cuts


def chain_curve(rows: int, widths: Sequence[int], rules: Rules, fusion: Fusion = Fusion.SEGMENTED) -> Curve:
    """Return the curve of ``X[rows, w0] W1[w0, w1] W2[w1, w2] …``.

    Segments run one after the other, each with the whole buffer. Between two of them a tensor is on the chip as a
    whole while both run, or it is written and read: what is held is so for both segments beside it. All of it is joined
    before any point is dropped, by a shortest path over the layers for every buffer size at once.

    Args:
        rows: of the input.
        widths: of the input and of each layer's result, at least two.
        rules: how traffic is counted.
        fusion: what may stay on the chip.

    Raises:
        UserError: the chain is too long or too large.
    """
    layers = len(widths) - 1
    if not 1 <= layers <= MOST_LAYERS:
        raise UserError(f"chain: found {layers} layers against 1 to {MOST_LAYERS}")
    check_words("chain", 4 * rows * sum(a * b for a, b in pairwise(widths)))
    tiled = tiled_templates(fusion, layers) if layers > 1 else ()
    if tiled:
        return least([template_curve(Segment(rows, tuple(widths)), templates, rules) for templates in tiled])
    longest = layers if fusion is Fusion.SEGMENTED else 1  # segment
    inner = () if fusion is Fusion.UNFUSED else range(1, layers)  # tensors that may be held
    ways = product(range(layers + 1), (False, True))
    states = [(place, is_held) for place, is_held in ways if place in inner or not is_held]
    best: dict[tuple[int, bool], Curve] = {}  # of all layers before a tensor, which is spilled or held
    for last, ends_held in states[1:]:
        curves = []
        for first, begins_held in (state for state in states if last - longest <= state[0] < last):
            segment = Segment(rows, tuple(widths[first : last + 1]), (begins_held, ends_held))
            curve = segment_curve(segment, rules)
            curves.append(total([best[first, begins_held], curve]) if first else curve)
        best[last, ends_held] = least(curves)
    return best[layers, False]


def tiled_templates(fusion: Fusion, layers: int) -> tuple[tuple[Template, ...], ...]:
    """Return the templates of the layers of a chain whose row tiles pass through all of it [huang24]; none of others.

    A slice that is all of a tensor is none: of `RELAX_IO_KN` that is `RELAX_IO`.

    >>> [str(each) for each in tiled_templates(Fusion.RELAX_IO_KN, 4)[0]]
    ['allowkn', 'allowk', 'base', 'allown']
    """
    base = (Template.BASE,)
    match fusion:
        case Fusion.RELAX_IO:
            return ((Template.ALLOWK, *base * (layers - 2), Template.ALLOWN),)
        case Fusion.RELAX_IO_KN if layers == 2:
            return ((Template.ALLOWKN, Template.ALLOWNK),)
        case Fusion.RELAX_IO_KN:
            sliced = (Template.ALLOWKN, Template.ALLOWK, *base * (layers - 3), Template.ALLOWN)
            return (sliced, *tiled_templates(Fusion.RELAX_IO, layers))
        case Fusion.FLASH if layers == len(FLASH):
            return (FLASH,)
        case Fusion.FLASH:  # a layer between takes and gives all: no slices are left to be cut
            return (base * layers,)
        case Fusion.UNFUSED | Fusion.UNTILED | Fusion.SEGMENTED:
            return ()
    assert_never(fusion)


def segment_curve(segment: Segment, rules: Rules) -> Curve:
    """Return the curve of consecutive layers, over all templates."""
    if segment.layers == 1:
        return layer_curve(segment.rows, segment.widths[0], segment.widths[1], rules, segment.held)
    return least([template_curve(segment, templates, rules) for templates in useful_sequences(segment)])


def layer_curve(rows: int, taken: int, given: int, rules: Rules, held: tuple[bool, bool] = (False, False)) -> Curve:
    """Return the curve of ``X[rows, taken] W[taken, given]`` with a buffer for X and the result and one for weights.

    The tile of the weights may be smaller than those of the operand and the result ask for: a word passes at a time,
    once per row tile, or a whole tile stays [huang24; docs/bounds.md]. With row tiles of p, a = rows / p:

    - the result stays: ``pn + p + 1`` words, X is read once per column tile, the weights a times;
    - X stays: ``pk + p + 1`` words, the result is visited once per tile of the sum, the weights are read a times;
    - the weights stay: ``kn + k + n`` words, both.

    Args:
        rows: of the operand and the result.
        taken: columns of the operand.
        given: columns of the result.
        rules: how traffic is counted.
        held: whether the operand and the result are on the chip as a whole: they take their words, and do not move.
    """
    p, k, n = (tile_sizes(extent, rules.tiles) for extent in (rows, taken, given))
    p_trips, k_trips, n_trips = (trips_of(e, t) for e, t in ((rows, p), (taken, k), (given, n)))
    reads, writes = (int(not each) for each in held)
    operand, weights, result = reads * rows * taken, taken * given, writes * rows * given
    written, written_once = rules.result_words(result * k_trips, result), rules.result_words(result, result)
    tables = (
        (reads * p[:, None] + writes * p[:, None] * n + 1,
         operand * n_trips + weights * p_trips[:, None] + written_once),
        (reads * p[:, None] * k + writes * p[:, None] + 1,
         operand + weights * p_trips[:, None] + written),
        (reads * k[:, None] + writes * n + k[:, None] * n,
         operand * n_trips + weights + written[:, None]),
    )  # fmt: skip
    beside = rows * taken * (1 - reads) + rows * given * (1 - writes)
    return least([front(sizes, traffic) for sizes, traffic in tables]).shifted(beside)
