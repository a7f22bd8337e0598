"""Shapes along axes: an axis is one of the operand's, and what is gathered, cut, joined or reduced fits it."""

from collections.abc import Callable, Mapping

from dfcompile.frontend.validation.operands import Operands, check_least_rank, check_rank, front_axis, shape_text

_ALONG_ONE_AXIS = 13  # version since which Softmax and its like do not look at all the axes from the given one on


def _check_axis(default: int) -> Callable[[Operands], None]:
    def check(operands: Operands) -> None:
        data = operands.shape(0)
        if data is not None:
            front_axis(operands, operands.integer("axis", default), len(data))

    return check


def _check_softmax(operands: Operands) -> None:
    data = operands.shape(0)
    if data is not None:
        default = -1 if operands.opset >= _ALONG_ONE_AXIS else 1
        front_axis(operands, operands.integer("axis", default), len(data))


def check_axes(operands: Operands) -> None:
    """Check that a list of axes names axes of the data, each once.

    Squeeze alone may name one twice: it goes once.

    Raises:
        UserError: it names another axis, or one twice, such as -2 and 2 of four.
    """
    position = _AXES.get(operands.node.op_type)
    data, axes = operands.shape(0), None if position is None else operands.numbers("axes", position)
    if data is None or axes is None:
        return
    rank = len(data) + (len(axes) if operands.node.op_type == "Unsqueeze" else 0)
    found = [front_axis(operands, axis, rank) for axis in axes]
    if len(set(found)) != len(found) and operands.node.op_type != "Squeeze":
        what = "attribute 'axes'" if operands.has("axes") else f"{operands.name(position or 0)} (axes)"
        raise operands.wrong(f"{what} is {list(axes)} against {len(axes)} different ones of {rank}")


def _check_concat(operands: Operands) -> None:
    known = [(position, shape) for position, shape in enumerate(operands.shapes) if shape is not None]
    if not known:
        return
    first, expected = known[0]
    check_least_rank(operands, first, 1)
    axis = front_axis(operands, operands.integer("axis", 0), len(expected), first)
    for position, shape in known[1:]:
        check_rank(operands, position, len(expected))
        if shape[:axis] + shape[axis + 1 :] != expected[:axis] + expected[axis + 1 :]:
            raise operands.wrong(
                f"{operands.name(position)} is {shape_text(shape)} against {shape_text(expected)} "
                f"of {operands.name(first)} (all but axis {axis} must agree)"
            )


def _check_gather(operands: Operands) -> None:
    data = operands.shape(0)
    if data is None:
        return
    check_least_rank(operands, 0, 1)
    axis = front_axis(operands, operands.integer("axis", 0), len(data))
    extent = data[axis]
    for index in operands.numbers("", 1) or ():
        if not -extent <= index < extent:
            raise operands.wrong(f"index {index} against {extent} elements of axis {axis} of {operands.name(0)}")


def _check_gather_elements(operands: Operands) -> None:
    data, indices = operands.shape(0), operands.shape(1)
    if data is None or indices is None:
        return
    axis = front_axis(operands, operands.integer("axis", 0), len(data))
    check_rank(operands, 1, len(data))
    _check_gather(operands)
    for at, (count, extent) in enumerate(zip(indices, data, strict=True)):
        if at != axis and count > extent:
            raise operands.wrong(
                f"{operands.name(1)} is {shape_text(indices)} against {shape_text(data)} of {operands.name(0)} "
                f"(along axis {at} no more than it has)"
            )


def _check_split(operands: Operands) -> None:
    data, parts = operands.shape(0), operands.numbers("split", 1)
    if data is None:
        return
    check_least_rank(operands, 0, 1)
    axis = front_axis(operands, operands.integer("axis", 0), len(data))
    if parts is None:
        return
    if len(parts) != len(operands.node.output):
        raise operands.wrong(f"{len(parts)} lengths against {len(operands.node.output)} results")
    if sum(parts) != data[axis] or min(parts) < 0:
        raise operands.wrong(f"lengths {list(parts)} against {data[axis]} elements of axis {axis}")


def _check_running_sum(operands: Operands) -> None:
    data, axis = operands.shape(0), operands.numbers("", 1)
    check_least_rank(operands, 0, 1)
    for each in axis or ():
        front_axis(operands, each, len(data or (1,)))


def _check_blocks(operands: Operands) -> None:
    data, size = operands.shape(0), operands.integer("blocksize", 0)
    if size < 1:
        raise operands.wrong(f"attribute 'blocksize' is {size} against at least 1")
    if data is None:
        return
    check_rank(operands, 0, 4)
    if operands.node.op_type == "DepthToSpace":
        if data[1] % size**2:
            raise operands.wrong(f"{data[1]} channels against a multiple of {size**2} (blocks of {size}×{size})")
    elif data[2] % size or data[3] % size:
        raise operands.wrong(f"images of {shape_text(data[2:])} against blocks of {size}×{size}")


def _check_lengths(what: str, factor: int, position: int) -> Callable[[Operands], None]:
    """Return the check that an operand has one number, or two, per axis of the data."""

    def check(operands: Operands) -> None:
        data, given = operands.shape(0), operands.shape(position)
        listed = operands.shape(3) if operands.node.op_type == "Pad" else None
        if data is None or given is None or len(given) != 1:
            return
        axes = len(data) if listed is None or len(listed) != 1 else listed[0]
        if given[0] != factor * axes:
            raise operands.wrong(f"{given[0]} {what} against {factor * axes} ({axes} axes)")

    return check


def _check_one_hot(operands: Operands) -> None:
    indices, values = operands.shape(0), operands.shape(2)
    if values is not None and values != (2,):
        raise operands.wrong(f"{operands.name(2)} is {shape_text(values)} against 2 values (off, on)")
    if indices is not None:
        front_axis(operands, operands.integer("axis", -1), len(indices) + 1)


def _check_transpose(operands: Operands) -> None:
    data, order = operands.shape(0), operands.integers("perm")
    if data is not None and order is not None and sorted(order) != list(range(len(data))):
        raise operands.wrong(f"attribute 'perm' is {list(order)} against an order of {len(data)} axes")


_REDUCTIONS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
# Position of the list of axes where it is an operand, in some version; beyond the operands where it never is.
_NEVER = 9
_AXES: Mapping[str, int] = {
    "CenterCropPad": _NEVER,
    "MeanVarianceNormalization": _NEVER,
    "Pad": 3,
    "Resize": _NEVER,
    "Slice": 3,
    "Squeeze": 1,
    "Unsqueeze": 1,
    **dict.fromkeys((f"Reduce{name}" for name in _REDUCTIONS.split()), 1),
}
_AXIS_DEFAULTS = {"ArgMax": 0, "ArgMin": 0, "LpNormalization": -1}
AXIS_CHECKS: Mapping[str, Callable[[Operands], None]] = {
    "Concat": _check_concat,
    "CumProd": _check_running_sum,
    "CumSum": _check_running_sum,
    "DepthToSpace": _check_blocks,
    "Gather": _check_gather,
    "GatherElements": _check_gather_elements,
    "OneHot": _check_one_hot,
    "Pad": _check_lengths("pads", 2, 1),
    "SpaceToDepth": _check_blocks,
    "Split": _check_split,
    "Tile": _check_lengths("repeats", 1, 1),
    "Transpose": _check_transpose,
    **{op_type: _check_axis(default) for op_type, default in _AXIS_DEFAULTS.items()},
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), _check_softmax),
}
