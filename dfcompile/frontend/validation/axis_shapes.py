"""Shapes along axes: an axis is one of the operand's, and what is cut, joined or reduced fits it."""

from collections.abc import Mapping

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.known_shapes import require, shape_text
from dfcompile.frontend.validation.operands import Check, Operands

_ALONG_ONE_AXIS = 13  # version since which Softmax and its like do not look at all the axes from the given one on


def _check_axis(default: int) -> Check:
    def check(operands: Operands) -> None:
        operands.axis(default)

    return check


def _check_softmax(operands: Operands) -> None:
    operands.axis(-1 if operands.opset >= _ALONG_ONE_AXIS else 1)


def check_axes(operands: Operands) -> None:
    """Check that a list of axes names axes of the data, each once.

    Squeeze alone may name one twice: it goes once.

    Raises:
        UserError: it names another axis, or one twice, such as -2 and 2 of four.
    """
    op_type = operands.node.op_type
    axes = operands.numbers("axes", _AXES[op_type]) if op_type in _AXES else None
    if axes is None:
        return
    rank = len(operands.known(0)) + (len(axes) if op_type == "Unsqueeze" else 0)
    named = {operands.front_axis(axis, rank) for axis in axes}
    if len(named) != len(axes) and op_type != "Squeeze":
        is_attribute = "axes" in operands.attributes
        what = "attribute 'axes'" if is_attribute else f"{operands.label(_AXES[op_type])} (axes)"
        raise UserError(f"{what} is {list(axes)} against {len(axes)} different ones of {rank}")


def _check_concat(operands: Operands) -> None:
    known = operands.known_shapes()
    if not known:
        return
    first, expected = known[0]
    operands.expect_least_rank(first, 1)
    axis = operands.front_axis(operands.integer("axis"), len(expected), first)
    for position, shape in known[1:]:
        operands.expect_rank(position, len(expected))
        require(
            shape[:axis] + shape[axis + 1 :] == expected[:axis] + expected[axis + 1 :],
            operands.against(
                position, f"{shape_text(expected)} of {operands.label(first)} (all but axis {axis} must agree)"
            ),
        )


def _check_split(operands: Operands) -> None:
    data, lengths = operands.known(0), operands.numbers("split", 1)
    operands.expect_least_rank(0, 1)
    axis = operands.axis(0)
    if lengths is not None:
        results = len(operands.node.output)
        require(len(lengths) == results, f"{len(lengths)} lengths against {results} results")
        is_whole = sum(lengths) == data[axis] and min(lengths) >= 0
        require(is_whole, f"lengths {list(lengths)} against {data[axis]} elements of axis {axis}")


def _check_running_sum(operands: Operands) -> None:
    operands.expect_least_rank(0, 1)
    for axis in operands.numbers("", 1) or ():
        operands.front_axis(axis, len(operands.shape(0) or (1,)))


def _check_blocks(operands: Operands) -> None:
    size = operands.integer("blocksize")
    require(size >= 1, f"attribute 'blocksize' is {size} against at least 1")
    _, channels, *image = operands.known(0, 4)
    if operands.node.op_type == "DepthToSpace":
        what = f"{channels} channels against a multiple of {size**2} (blocks of {size}×{size})"
        require(not channels % size**2, what)
    else:
        is_whole = not any(extent % size for extent in image)
        require(is_whole, f"images of {shape_text(image)} against blocks of {size}×{size}")


def _check_lengths(what: str, factor: int) -> Check:
    """Return the check that the second operand has one number, or two, per axis of the data."""

    def check(operands: Operands) -> None:
        axes, given = len(operands.known(0)), operands.known(1)
        listed = operands.shape(3) if operands.node.op_type == "Pad" else None
        if listed is not None and len(listed) == 1:
            axes = listed[0]
        if len(given) == 1:
            require(given[0] == factor * axes, f"{given[0]} {what} against {factor * axes} ({axes} axes)")

    return check


def _check_one_hot(operands: Operands) -> None:
    operands.expect_vector(2, 2, "values (off, on)")
    operands.front_axis(operands.integer("axis", -1), len(operands.known(0)) + 1)


def _check_transpose(operands: Operands) -> None:
    rank, order = len(operands.known(0)), operands.integers("perm")
    if order is not None:
        is_order = sorted(order) == list(range(rank))
        require(is_order, f"attribute 'perm' is {list(order)} against an order of {rank} axes")


_KINDS = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"
REDUCTIONS = tuple(f"Reduce{kind}" for kind in _KINDS.split())
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
    **dict.fromkeys(REDUCTIONS, 1),
}
AXIS_CHECKS: Mapping[str, Check] = {
    "ArgMax": _check_axis(0),
    "ArgMin": _check_axis(0),
    "Concat": _check_concat,
    "CumProd": _check_running_sum,
    "CumSum": _check_running_sum,
    "DepthToSpace": _check_blocks,
    "LpNormalization": _check_axis(-1),
    "OneHot": _check_one_hot,
    "Pad": _check_lengths("pads", 2),
    "SpaceToDepth": _check_blocks,
    "Split": _check_split,
    "Tile": _check_lengths("repeats", 1),
    "Transpose": _check_transpose,
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), _check_softmax),
}
