"""Chains of products: what stays on the chip between layers, whole tensors or tiles of rows, or nothing."""

from collections.abc import Sequence
from enum import StrEnum, unique
from itertools import pairwise, product
from typing import assert_never

from dfcompile.bounds.curve import Curve, check_words, front, least, total
from dfcompile.bounds.fusion.templates import FLASH, Segment, Template, template_curve, useful_sequences
from dfcompile.bounds.tilings import Rules, tile_sizes, trips_of
from dfcompile.errors import UserError

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
