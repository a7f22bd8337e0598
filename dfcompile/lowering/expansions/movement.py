"""ONNX's operators that move elements, or view them, and compute nothing, such as Pad; the canonical Concat and Pad."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from dfcompile.frontend import PACKED_BITS, element_kind, integer_limits
from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, Tensor
from dfcompile.lowering.expansion import expansion, onnx_expansion
from dfcompile.lowering.expressions import literal
from dfcompile.lowering.map_fragment import along, loops_over
from dfcompile.lowering.operators import Concat, Copy, Pad, PadMode


@onnx_expansion("Concat", "copy", default=True)
def concat(op: Operator, build: CanonicalFragment) -> None:
    """``Y[…, offset_n + i, …] = X_n[…, i, …]``; a view of a single operand."""
    operands, y = op.operands(), op.output()
    if len(operands) == 1:
        build.view_as(operands[0], y)
    else:
        build.add(Concat(op.axis(rank=y.rank)), operands, y)


@expansion(Concat, "copy", source="dematteis23", default=True)
def concat_parts(op: CanonicalNode[Concat], build: MapFragment) -> None:
    """One task per operand copies it into its place; the result is in memory, as several tasks write it."""
    y, axis = op.output(), op.operator.axis
    offset = 0
    for position, x in enumerate(op.operands()):
        loops, place = loops_over(x.shape), along(y, axis, offset)
        build.map(f"part{position}", loops=loops, reads={"x": (x, list(loops))}, write=place, code="x")
        offset += x.shape[axis]


@onnx_expansion("Expand", "copy", default=True)
def expand(op: Operator, build: CanonicalFragment) -> None:
    """``Y[i, …] = X[i or 0, …]``: one upsampler; a view if nothing is repeated."""
    x, y = op.input(0), op.output()
    if x.elements == y.elements:
        build.view_as(x, y)
        return
    first = y.rank - x.rank
    read = tuple(f"i{first + axis}" if extent > 1 else "0" for axis, extent in enumerate(x.shape))
    build.add(Copy(read=read), [x], y)


@onnx_expansion("Tile", "copy", default=True)
def tile(op: Operator, build: CanonicalFragment) -> None:
    """``Y[n * r + i, …] = X[i, …]`` for every repetition r of an axis of extent n: one upsampler."""
    x, y = op.input(0), op.output()
    if x.elements == y.elements:
        build.view_as(x, y)
        return
    repeats = [total // extent for total, extent in zip(y.shape, x.shape, strict=True)]
    build.add(repeated(repeats, x.shape, reads_inner=True), [x], y)


def repeated(outer: Sequence[int], inner: Sequence[int], *, reads_inner: bool) -> Copy:
    """Return the copy to an array whose axes are an outer and an inner loop each, in row order, one of which reads."""
    axes = range(len(outer))
    loops = tuple(count for pair in zip(outer, inner, strict=True) for count in pair)
    read = tuple(f"i{2 * axis + reads_inner}" for axis in axes)
    return Copy(loops, read, tuple(f"{inner[axis]}*i{2 * axis} + i{2 * axis + 1}" for axis in axes))


@onnx_expansion("Slice", "copy", default=True)
def slice_(op: Operator, build: CanonicalFragment) -> None:
    """``Y[i, …] = X[start + step * i, …]``: one task; a view of the whole."""
    x, y = op.input(0), op.output()
    starts = _structure(op, 1, "starts") or ()
    axes = _structure(op, 3, "axes")
    axes = tuple(range(len(starts))) if axes is None else tuple(op.front_axis(axis, x.rank) for axis in axes)
    steps = op.static_integers(4, "steps") or (1,) * len(starts)
    if not len(starts) == len(axes) == len(steps):
        raise op.unsupported(f"{len(starts)} starts, {len(axes)} axes, {len(steps)} steps against as many of each")
    first, step = [0] * x.rank, [1] * x.rank
    for axis, start, stride in zip(axes, starts, steps, strict=True):
        last = x.shape[axis] - 1
        from_front = start + x.shape[axis] if start < 0 else start
        first[axis], step[axis] = min(max(from_front, 0), last), stride
    if x.shape == y.shape and all(stride > 0 for stride in step):
        build.view_as(x, y)
    else:
        _copy_part(build, "", x, y, first, step)


@onnx_expansion("Split", "copy", default=True)
def split(op: Operator, build: CanonicalFragment) -> None:
    """``Y_n[i, …] = X[offset_n + i, …]``: one task per part; a view if there is one part."""
    x, axis = op.input(0), op.axis()
    offset = 0
    lengths = split_lengths(op, x.shape[axis])
    for position, length in enumerate(lengths):
        part = op.optional_output(position)
        if part is not None and len(lengths) == 1:
            build.view_as(x, part)
        elif part is not None:
            first = [offset if at == axis else 0 for at in range(x.rank)]
            _copy_part(build, f"part{position}", x, part, first, [1] * x.rank)
        offset += length


def split_lengths(op: Operator, extent: int) -> tuple[int, ...]:
    """Return the lengths of the parts: as given, or equal ones of which the last may be shorter."""
    given = _structure(op, 1, "split")
    if given is not None:
        return given
    count = op.integer("num_outputs", len(op.outputs))
    length = -(-extent // count)
    return tuple([max(min(length, extent - length * position), 0) for position in range(count)])


def _structure(op: Operator, position: int, name: str) -> tuple[int, ...] | None:
    """Return what was an attribute in early versions of the operator and is an operand now."""
    return op.integers(name) if name in op.attributes else op.static_integers(position, name)


def _copy_part(build: CanonicalFragment, name: str, x: Tensor, y: Tensor, first: list[int], step: list[int]) -> None:
    read = [f"i{axis}" if stride == 1 else f"{stride}*i{axis}" for axis, stride in enumerate(step)]
    read = [f"{start} + {scaled}" if start else scaled for start, scaled in zip(first, read, strict=True)]
    build.add(Copy(read=tuple(read)), [x], y, step=name)


@onnx_expansion("DepthToSpace", "copy", default=True)
def depth_to_space(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c, h*s + p, w*s + q] = X[b, p*s*d + q*d + c, h, w]`` for depth d (DCR), one task."""
    x, y, size = op.input(0), op.output(), op.integer("blocksize", 1)
    batch, channels, height, width = x.shape
    depth = channels // (size * size)
    if _mode(op) == "DCR":
        shape, order = (batch, size, size, depth, height, width), (0, 3, 4, 1, 5, 2)
    else:
        shape, order = (batch, depth, size, size, height, width), (0, 1, 4, 2, 5, 3)
    _permute(build, x, shape, order, y)


@onnx_expansion("SpaceToDepth", "copy", default=True)
def space_to_depth(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, p*s*d + q*d + c, h, w] = X[b, c, h*s + p, w*s + q]`` for d channels (DCR), one task."""
    x, y, size = op.input(0), op.output(), op.integer("blocksize", 1)
    batch, channels, height, width = x.shape
    shape = (batch, channels, height // size, size, width // size, size)
    _permute(build, x, shape, (0, 3, 5, 1, 2, 4) if _mode(op) == "DCR" else (0, 1, 3, 5, 2, 4), y)


def _mode(op: Operator) -> str:
    return op.choice("mode", "DCR", ("DCR", "CRD"), "'DCR' or 'CRD'")


def _permute(build: CanonicalFragment, x: Tensor, shape: tuple[int, ...], order: tuple[int, ...], y: Tensor) -> None:
    split = build.view(x, "split", shape)
    read = [f"i{order.index(axis)}" for axis in range(len(shape))]
    build.view_as(build.copied("permuted", split, read, [shape[axis] for axis in order], step=""), y)


def _view(op: Operator, build: CanonicalFragment) -> None:
    """The same elements in the same order under another shape: no data moves."""
    build.view_as(op.input(0), op.output())


_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity")
EXPANSIONS = tuple(onnx_expansion(op_type, "view", default=True)(_view) for op_type in _VIEWS)


@onnx_expansion("Dropout", "view", default=True)
def dropout(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X`` in inference: no data moves; the mask, if it is used, is true everywhere."""
    ratio, training = op.optional_input(1), op.optional_input(2)
    drops_nothing = ratio is not None and ratio.value is not None and not ratio.value.any()
    if not drops_nothing and training is not None and (training.value is None or training.value.any()):
        raise op.unsupported("operand 'training_mode' is true against false (export the model for inference)")
    mask = op.optional_output(1)
    if mask is not None:
        build.elementwise("True", [op.input(0)], mask, step="mask")
    if op.outputs[0] is not None:
        build.view_as(op.input(0), op.outputs[0])


@onnx_expansion("BitCast", "view", default=True)
def bit_cast(op: Operator, build: CanonicalFragment) -> None:
    """The bits as they are: no data moves; a copy where the result must be an array of its own."""
    x, y = op.input(0), op.output()
    if PACKED_BITS.keys() & {x.dtype, y.dtype} and x.dtype != y.dtype:
        raise op.unsupported(f"result {y} of {x} against types of whole bytes")
    op.refuse_if(x.element_bytes != y.element_bytes, f"result {y} against a type as wide")
    build.view_as(x, y)


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
