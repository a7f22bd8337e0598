"""ONNX Slice and Split: parts of an array."""

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.operators import Copy


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
    lengths = [max(min(length, extent - length * position), 0) for position in range(count)]
    return tuple(lengths)


def _structure(op: Operator, position: int, name: str) -> tuple[int, ...] | None:
    """Return what was an attribute in early versions of the operator and is an operand now."""
    return op.integers(name) if name in op.attributes else op.static_integers(position, name)


def _copy_part(
    build: CanonicalFragment, operator_step: str, x: Tensor, y: Tensor, first: list[int], step: list[int]
) -> None:
    read = [f"i{axis}" if stride == 1 else f"{stride}*i{axis}" for axis, stride in enumerate(step)]
    read = [f"{start} + {scaled}" if start else scaled for start, scaled in zip(first, read, strict=True)]
    build.add(Copy(read=tuple(read)), [x], y, step=operator_step)
