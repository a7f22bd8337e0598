"""Padding, ONNX's and the canonical Pad."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from dfcompile.frontend import element_kind, integer_limits
from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, expansion, onnx_expansion
from dfcompile.lowering.expressions import literal
from dfcompile.lowering.map_fragment import loops_over
from dfcompile.lowering.operators import Pad, PadMode

Piece = tuple[int, str, str]  # extent, where to read and where to write, both in the loop "i"
Loops = tuple[dict[str, int], str]  # of an axis, and where they write


_MODES: tuple[PadMode, ...] = ("constant", "edge", "reflect", "wrap")


def _pieces(mode: PadMode, extent: int, begin: int, end: int) -> list[Piece]:
    """Return how an axis of some extent is put together."""
    data = (extent + min(begin, 0) + min(end, 0), f"{max(-begin, 0)} + i", f"{max(begin, 0)} + i")
    if mode == "constant":
        return [data]
    before, behind = {
        "edge": ("0", f"{extent - 1}"),
        "reflect": (f"{begin} - i", f"{extent - 2} - i"),
        "wrap": (f"{extent - begin} + i", "i"),
    }[mode]
    return [(begin, before, "i"), data, (end, behind, f"{begin + extent} + i")]


@onnx_expansion("Pad", "pieces", default=True)
def pad(op: Operator, build: CanonicalFragment) -> None:
    """``Y[begin + i, …] = X[i, …]`` and around it a constant, the edge, a reflection or the other side; or cropped."""
    x, y = op.input(0), op.output()
    given, pads = op.choice("mode", "constant", _MODES), _pads(op)
    mode = next(known for known in _MODES if known == given)
    if not any(pads):
        build.view_as(x, y)
        return
    for axis, extent in enumerate(x.shape):
        sides = pads[axis], pads[axis + x.rank]
        most = {"reflect": extent - 1, "wrap": extent}.get(mode)
        op.refuse_if(mode != "constant" and min(sides) < 0, f"negative padding {sides} of axis {axis} in mode {mode!r}")
        if most is not None and max(sides) > most:
            raise op.unsupported(f"padding {sides} of axis {axis} against {most} at most in mode {mode!r}")
    build.add(Pad(tuple(pads), mode, _value(op)), [x], y)


def _pads(op: Operator) -> list[int]:
    rank = op.input(0).rank
    given = op.integers("pads") if "pads" in op.attributes else op.static_integers(1, "pads") or ()
    axes = op.static_integers(3, "axes") or range(rank)
    pads = [0] * (2 * rank)
    for position, axis in enumerate(axes):
        front = op.front_axis(axis, rank)
        pads[front], pads[front + rank] = given[position], given[position + len(axes)]
    return pads


def _value(op: Operator) -> float:
    if op.optional_input(2) is None:
        return op.real("value", 0.0)
    found = op.constant(2, "constant_value").item()
    return int(found) if isinstance(found, bool) else found if isinstance(found, int | float) else 0.0


@expansion(Pad, "pieces", source="onnx", default=True)
def pad_in_pieces(op: CanonicalNode[Pad], build: MapFragment) -> None:
    """A task copies the data to its place, others write the constant around it; other modes have one per piece."""
    x, y = op.input(0), op.output()
    pads, mode = op.operator.pads, op.operator.mode
    if mode == "constant":
        for number, border in enumerate(_borders(y.shape, pads)):
            loops = {loop: extent for axis in border for loop, extent in axis[0].items()}
            write, code = [index for _, index in border], _source(op.operator.value, y.dtype)
            build.map(f"border{number}", loops=loops, reads={}, write=(y, write), code=code)
    pieces = [_pieces(mode, extent, pads[axis], pads[axis + x.rank]) for axis, extent in enumerate(x.shape)]
    places = [place for place in product(*pieces) if all(extent > 0 for extent, _, _ in place)]
    for position, place in enumerate(places):
        loops = loops_over(extent for extent, _, _ in place)
        read = [source.replace("i", f"i{axis}") for axis, (_, source, _) in enumerate(place)]
        write = [target.replace("i", f"i{axis}") for axis, (_, _, target) in enumerate(place)]
        name = "" if len(places) == 1 else f"piece{position}"
        build.map(name, loops=loops, reads={"x": (x, read)}, write=(y, write), code="x")


def _borders(shape: Sequence[int], pads: Sequence[int]) -> Iterator[list[Loops]]:
    """Yield what is around the data, each element once: of an axis, where those before it have data."""
    rank = len(shape)
    full: list[Loops] = [({f"i{axis}": extent}, f"i{axis}") for axis, extent in enumerate(shape)]
    inner = list[Loops]()
    for axis, extent in enumerate(shape):
        name = f"i{axis}"
        first = min(max(pads[axis], 0), extent)
        behind = max(first, extent - max(pads[axis + rank], 0))
        sides: list[Loops] = [({name: first}, name), ({name: extent - behind}, f"{behind} + {name}")]
        if first == extent - behind:
            sides = [({f"s{axis}": 2, name: first}, f"{behind}*s{axis} + {name}")]
        for side in sides:
            border = [*inner, side, *full[axis + 1 :]]
            if all(count > 0 for loops, _ in border for count in loops.values()):
                yield border
        inner.append(({name: behind - first}, f"{first} + {name}"))


def _source(value: float, dtype: str) -> str:
    if element_kind(dtype) in "iu" and not np.isfinite(value):
        # The border of a maximum: the smallest number there is.
        least, most = integer_limits(dtype)
        return literal(least if value < 0 else most, dtype)
    return literal(value, dtype)
