"""Shapes of normalisations: scale and bias fit the channels or the normalised elements."""

from collections.abc import Callable, Mapping

from dfcompile.frontend.validation.operands import (
    Operands,
    broadcasts_to,
    check_least_rank,
    check_vector,
    front_axis,
    shape_text,
)

_MOMENT_AXES = (0, 2, 3)  # of MeanVarianceNormalization by default: all but the channels of an image
_GROUP_PARAMETERS_PER_CHANNEL = 21  # version of the operators since which that is so


def _check_channel_parameters(operands: Operands) -> None:
    data = operands.shape(0)
    if data is None:
        return
    check_least_rank(operands, 0, 2)
    for position in range(1, len(operands.shapes)):
        check_vector(operands, position, data[1], "channels")


def _check_instance_normalization(operands: Operands) -> None:
    check_least_rank(operands, 0, 3)
    _check_channel_parameters(operands)


def _check_group_normalization(operands: Operands) -> None:
    data = operands.shape(0)
    groups = operands.integer("num_groups", 0)
    if groups < 1:
        raise operands.wrong(f"attribute 'num_groups' is {groups} against at least 1")
    if data is None:
        return
    check_least_rank(operands, 0, 3)
    if data[1] % groups:
        raise operands.wrong(f"{data[1]} channels against a multiple of {groups} groups")
    length, what = (data[1], "channels") if operands.opset >= _GROUP_PARAMETERS_PER_CHANNEL else (groups, "groups")
    for position in (1, 2):
        check_vector(operands, position, length, what)


def _check_last_axes(operands: Operands) -> None:
    data = operands.shape(0)
    if data is None:
        return
    normalised = data[front_axis(operands, operands.integer("axis", -1), len(data)) :]
    for position in range(1, len(operands.shapes)):
        shape = operands.shape(position)
        if shape is not None and not broadcasts_to(shape, normalised):
            raise operands.wrong(
                f"{operands.name(position)} is {shape_text(shape)} against {shape_text(normalised)} "
                f"normalised elements of {operands.name(0)}"
            )


def _check_moments(operands: Operands) -> None:
    data, axes = operands.shape(0), operands.integers("axes")
    if data is None:
        return
    check_least_rank(operands, 0, 1)
    if axes is None:
        for axis in _MOMENT_AXES:
            front_axis(operands, axis, len(data))
    elif not axes:
        raise operands.wrong("attribute 'axes' is [] against at least one axis")


NORMALISATION_CHECKS: Mapping[str, Callable[[Operands], None]] = {
    "BatchNormalization": _check_channel_parameters,
    "GroupNormalization": _check_group_normalization,
    "InstanceNormalization": _check_instance_normalization,
    "LayerNormalization": _check_last_axes,
    "MeanVarianceNormalization": _check_moments,
    "RMSNormalization": _check_last_axes,
}
