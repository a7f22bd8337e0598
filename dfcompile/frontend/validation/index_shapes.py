"""Shapes of what is read and written at indices: these are within the data, and as many as there are updates."""

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from dfcompile.frontend.validation.operands import (
    Operands,
    Shape,
    check_least_rank,
    check_rank,
    front_axis,
    shape_text,
)


def _check_within(operands: Operands, extents: Shape) -> None:
    """Check constant indices, each of which names one element of some dimensions."""
    constant = operands.constants[1]
    if constant is None or not constant.size:
        return
    for place in np.asarray(constant).reshape(-1, len(extents)).tolist():
        if any(not -extent <= index < extent for index, extent in zip(place, extents, strict=True)):
            raise operands.wrong(f"index {place} against {shape_text(extents)} elements of {operands.name(0)}")


def _check_scatter_nd(operands: Operands) -> None:
    data, indices, updates = (operands.shape(position) for position in range(3))
    if data is None or indices is None:
        return
    check_least_rank(operands, 0, 1)
    check_least_rank(operands, 1, 1)
    within = indices[-1]
    if not 1 <= within <= len(data):
        raise operands.wrong(f"indices of {within} dimensions against 1 to {len(data)} of {operands.name(0)}")
    wanted = (*indices[:-1], *data[within:])
    if updates is not None and updates != wanted:
        raise operands.wrong(f"{operands.name(2)} is {shape_text(updates)} against {shape_text(wanted)}")
    _check_within(operands, data[:within])


def _check_gather_nd(operands: Operands) -> None:
    data, indices, batch = operands.shape(0), operands.shape(1), operands.integer("batch_dims", 0)
    if data is None or indices is None:
        return
    check_least_rank(operands, 0, 1)
    check_least_rank(operands, 1, 1)
    if not 0 <= batch < min(len(data), len(indices)) or data[:batch] != indices[:batch]:
        raise operands.wrong(
            f"{batch} batch dimensions of {shape_text(data)} against those of {shape_text(indices)} of "
            f"{operands.name(1)}"
        )
    within = indices[-1]
    if not 1 <= within <= len(data) - batch:
        raise operands.wrong(f"indices of {within} dimensions against 1 to {len(data) - batch} of {operands.name(0)}")
    _check_within(operands, data[batch : batch + within])


def _check_scatter_elements(operands: Operands) -> None:
    data, indices, updates = (operands.shape(position) for position in range(3))
    if data is None:
        return
    check_least_rank(operands, 0, 1)
    axis = front_axis(operands, operands.integer("axis", 0), len(data))
    for position, shape in ((1, indices), (2, updates)):
        check_rank(operands, position, len(data))
        for at, (count, extent) in enumerate(zip(shape or (), data, strict=False)):
            if at != axis and count > extent:
                raise operands.wrong(
                    f"{operands.name(position)} is {shape_text(shape or ())} against {shape_text(data)} of "
                    f"{operands.name(0)} (along axis {at} no more than it has)"
                )
    if indices is not None and updates is not None and indices != updates:
        raise operands.wrong(f"{operands.name(2)} is {shape_text(updates)} against {shape_text(indices)} indices")
    for index in operands.numbers("", 1) or ():
        if not -data[axis] <= index < data[axis]:
            raise operands.wrong(f"index {index} against {data[axis]} elements of axis {axis} of {operands.name(0)}")


def _check_tensor_scatter(operands: Operands) -> None:
    data, updates, starts = (operands.shape(position) for position in range(3))
    if data is None or updates is None:
        return
    check_least_rank(operands, 0, 2)
    check_rank(operands, 1, len(data))
    axis = front_axis(operands, operands.integer("axis", -2), len(data))
    if axis == 0:
        raise operands.wrong("axis 0 against one behind that of the batch")
    others = all(count == extent for at, (count, extent) in enumerate(zip(updates, data, strict=True)) if at != axis)
    if not others or updates[axis] > data[axis]:
        raise operands.wrong(
            f"{operands.name(1)} is {shape_text(updates)} against {shape_text(data)} of {operands.name(0)} "
            f"(along axis {axis} no more, else the same)"
        )
    if starts is not None and starts != (data[0],):
        raise operands.wrong(f"{operands.name(2)} is {shape_text(starts)} against {data[0]} places")


def _check_top_k(operands: Operands) -> None:
    data, wanted = operands.shape(0), operands.numbers("", 1)
    if data is None:
        return
    check_least_rank(operands, 0, 1)
    axis = front_axis(operands, operands.integer("axis", -1), len(data))
    if wanted is not None and (len(wanted) != 1 or not 0 <= wanted[0] <= data[axis]):
        raise operands.wrong(f"K is {list(wanted)} against one number up to {data[axis]} of axis {axis}")


def _check_reverse_sequence(operands: Operands) -> None:
    data, lengths = operands.shape(0), operands.shape(1)
    if data is None:
        return
    check_least_rank(operands, 0, 2)
    batch, time = (operands.integer(name, default) for name, default in (("batch_axis", 1), ("time_axis", 0)))
    if {batch, time} != {0, 1}:
        raise operands.wrong(f"batch axis {batch} and time axis {time} against 0 and 1")
    if lengths is not None and lengths != (data[batch],):
        raise operands.wrong(f"{operands.name(1)} is {shape_text(lengths)} against {data[batch]} lengths")
    for length in operands.numbers("", 1) or ():
        if not 0 <= length <= data[time]:
            raise operands.wrong(f"length {length} against 0 to {data[time]}")


def _check_windows_of_image(operands: Operands) -> None:
    data, image, kernel = operands.shape(0), operands.numbers("", 1), operands.numbers("", 2)
    check_rank(operands, 0, 3)
    if data is None or image is None or kernel is None:
        return
    rank = len(image)
    strides, dilations = (operands.integers(name) or (1,) * rank for name in ("strides", "dilations"))
    pads = operands.integers("pads") or (0,) * (2 * rank)
    if not len(kernel) == len(strides) == len(dilations) == rank or len(pads) != 2 * rank:
        raise operands.wrong(f"blocks, strides, dilations and pads against those of {rank} dimensions")
    if min((*kernel, *strides, *dilations), default=1) < 1 or min(pads, default=0) < 0:
        raise operands.wrong("blocks, strides and dilations of at least 1 and pads of at least 0 against others")
    spans = (dilation * (size - 1) + 1 for dilation, size in zip(dilations, kernel, strict=True))
    padded = (image[axis] + pads[axis] + pads[axis + rank] for axis in range(rank))
    counts = [(extent - span) // stride + 1 for extent, span, stride in zip(padded, spans, strides, strict=True)]
    if min(counts, default=1) < 1 or data[2] != prod(counts) or data[1] % prod(kernel):
        raise operands.wrong(
            f"{operands.name(0)} is {shape_text(data)} against {counts} blocks of {shape_text(kernel)} per channel"
        )


def _check_selection(operands: Operands) -> None:
    data, condition = operands.shape(0), operands.shape(1)
    check_rank(operands, 1, 1)
    if data is None or condition is None or not operands.has("axis"):
        return
    axis = front_axis(operands, operands.integer("axis", 0), len(data))
    if len(condition) == 1 and condition[0] > data[axis]:
        raise operands.wrong(f"{condition[0]} conditions against {data[axis]} elements of axis {axis}")


INDEX_CHECKS: Mapping[str, Callable[[Operands], None]] = {
    "Col2Im": _check_windows_of_image,
    "Compress": _check_selection,
    "GatherND": _check_gather_nd,
    "ReverseSequence": _check_reverse_sequence,
    "Scatter": _check_scatter_elements,
    "ScatterElements": _check_scatter_elements,
    "ScatterND": _check_scatter_nd,
    "TensorScatter": _check_tensor_scatter,
    "TopK": _check_top_k,
}
