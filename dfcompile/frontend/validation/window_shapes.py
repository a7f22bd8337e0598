"""Shapes of convolutions and pooling: channels, filters, windows and what is put around the data."""

from collections.abc import Callable, Mapping

from dfcompile.frontend.validation.operands import (
    Operands,
    Shape,
    check_least_rank,
    check_rank,
    check_vector,
    shape_text,
)


def check_groups(operands: Operands, filters: int) -> None:
    """The channels of the data are those of the filters of all groups, and each group has as many filters.

    Raises:
        UserError: they are not.
    """
    data, weights, group = operands.shape(0), operands.shape(filters), operands.integer("group", 1)
    if data is None or weights is None or len(data) < 2 or len(weights) < 2:
        return
    if group < 1 or data[1] != weights[1] * group:
        raise operands.wrong(
            f"input {operands.name(0)} has {data[1]} channels against weights for {weights[1] * group} (groups {group})"
        )
    if weights[0] % group:
        raise operands.wrong(f"{weights[0]} filters against a multiple of {group} groups")


def _check_convolution(operands: Operands) -> None:
    data, weights = operands.shape(0), operands.shape(1)
    if data is None or weights is None:
        return
    check_rank(operands, 1, len(data))
    check_least_rank(operands, 0, 3)
    check_groups(operands, 1)
    _check_kernel(operands, weights)
    _check_windows(operands, len(data) - 2)
    check_vector(operands, 2, weights[0], "filters")


def _check_transposed_convolution(operands: Operands) -> None:
    data, weights = operands.shape(0), operands.shape(1)
    if data is None or weights is None:
        return
    check_rank(operands, 1, len(data))
    check_least_rank(operands, 0, 3)
    group = operands.integer("group", 1)
    if data[1] != weights[0]:
        raise operands.wrong(f"input {operands.name(0)} has {data[1]} channels against weights for {weights[0]}")
    if data[1] % group:
        raise operands.wrong(f"{data[1]} channels against a multiple of {group} groups")
    _check_kernel(operands, weights)
    _check_windows(operands, len(data) - 2)
    _check_transposed_result(operands, data[2:], weights[2:])
    check_vector(operands, 2, weights[1] * group, "filters")


def _check_transposed_result(operands: Operands, data: Shape, kernel: Shape) -> None:
    """The padding of the result, and its size if that is given, are such that these data give it."""
    rank = len(data)
    strides = operands.integers("strides") or (1,) * rank
    dilations = operands.integers("dilations") or (1,) * rank
    for name in ("output_padding", "output_shape"):
        found = operands.integers(name)
        if found is not None and len(found) != rank:
            raise operands.wrong(f"attribute {name!r} has {len(found)} entries against {rank}")
    for axis, padding in enumerate(operands.integers("output_padding") or ()):
        most = max(strides[axis], dilations[axis])
        if padding >= most:
            raise operands.wrong(f"attribute 'output_padding' has {padding} against less than {most}")
    for axis, size in enumerate(operands.integers("output_shape") or ()):
        # A remainder of the stride is left open by the sizes: output padding.
        most = strides[axis] * data[axis] + dilations[axis] * (kernel[axis] - 1)
        if size > most:
            raise operands.wrong(f"attribute 'output_shape' has {size} against at most {most} that the data can give")


def _check_pooling(operands: Operands) -> None:
    data, kernel = operands.shape(0), operands.integers("kernel_shape")
    check_least_rank(operands, 0, 3)
    rank = len(data) - 2 if data is not None else len(kernel or ())
    if kernel is None:
        raise operands.wrong("attribute 'kernel_shape' is missing")
    _check_windows(operands, rank)
    _check_same(operands, kernel)
    for at, pad in enumerate(operands.integers("pads") or ()):
        if pad >= kernel[at % rank]:
            raise operands.wrong(
                f"attribute 'pads' has {pad} against less than the window's {kernel[at % rank]} "
                "(a window may not lie in the padding alone)"
            )


def _check_same(operands: Operands, kernel: Shape) -> None:
    """What SAME means is agreed upon only where it is padding, and no window is stretched."""
    data = operands.shape(0)
    if data is None or not operands.text("auto_pad", "NOTSET").startswith("SAME"):
        return
    if max(operands.integers("dilations") or (1,)) > 1:
        raise operands.wrong(
            "attribute 'auto_pad' is SAME and 'dilations' are not 1 against pads in numbers "
            "(onnxruntime and ONNX's definition then pad differently)"
        )
    strides = operands.integers("strides") or (1,) * len(kernel)
    for extent, size, stride in zip(data[2:], kernel, strides, strict=True):
        # onnxruntime then begins within the data, or refuses it.
        if (-(-extent // stride) - 1) * stride + size < extent:
            raise operands.wrong(
                f"windows of {size} at a distance of {stride} against {extent} elements to cover (SAME)"
            )


def _check_global_pooling(operands: Operands) -> None:
    check_least_rank(operands, 0, 3)


def _check_response_normalization(operands: Operands) -> None:
    check_least_rank(operands, 0, 3)


def _check_kernel(operands: Operands, weights: Shape) -> None:
    kernel = operands.integers("kernel_shape")
    if kernel is not None and kernel != weights[2:]:
        raise operands.wrong(
            f"attribute 'kernel_shape' is {shape_text(kernel)} against {shape_text(weights[2:])} weights"
        )


def _check_windows(operands: Operands, rank: int) -> None:
    for name, factor in (("kernel_shape", 1), ("strides", 1), ("dilations", 1), ("pads", 2)):
        found = operands.integers(name)
        if found is not None and len(found) != factor * rank:
            raise operands.wrong(f"attribute {name!r} has {len(found)} entries against {factor * rank}")
    auto_pad = operands.text("auto_pad", "NOTSET")
    if auto_pad not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise operands.wrong(f"attribute 'auto_pad' is {auto_pad!r} against NOTSET, VALID, SAME_UPPER or SAME_LOWER")
    pads = operands.integers("pads")
    if auto_pad == "VALID" and operands.integers("output_shape") is not None:
        raise operands.wrong("attribute 'auto_pad' is VALID, which has no pads, against those of 'output_shape'")
    # VALID says the same as pads of 0; SAME_UPPER and SAME_LOWER say something else.
    if auto_pad != "NOTSET" and pads is not None and (auto_pad != "VALID" or any(pads)):
        raise operands.wrong(f"attribute 'auto_pad' is {auto_pad} and 'pads' is {list(pads)} against one of the two")


WINDOW_CHECKS: Mapping[str, Callable[[Operands], None]] = {
    "AveragePool": _check_pooling,
    "Conv": _check_convolution,
    "ConvTranspose": _check_transposed_convolution,
    "GlobalAveragePool": _check_global_pooling,
    "GlobalLpPool": _check_global_pooling,
    "GlobalMaxPool": _check_global_pooling,
    "LRN": _check_response_normalization,
    "LpPool": _check_pooling,
    "MaxPool": _check_pooling,
}
WINDOW_LEAST: Mapping[str, int] = {
    "strides": 1,
    "dilations": 1,
    "kernel_shape": 1,
    "group": 1,
    "pads": 0,
    "output_padding": 0,
    "output_shape": 1,
    "size": 1,
}
