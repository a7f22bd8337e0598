"""Shapes of normalisations: scale and bias fit the channels or the normalised elements."""

from collections.abc import Mapping

from dfcompile.frontend.onnx.known_shapes import require, shape_text
from dfcompile.frontend.validation.operands import Check, Operands, broadcasts_to

_MOMENT_AXES = (0, 2, 3)  # of MeanVarianceNormalization by default: all but the channels of an image
_GROUP_PARAMETERS_PER_CHANNEL = 21  # version of the operators since which that is so


def _check_channel_parameters(least_rank: int) -> Check:
    def check(operands: Operands) -> None:
        operands.expect_least_rank(0, least_rank)
        channels = operands.known(0)[1]
        for position in range(1, len(operands.node.input)):
            operands.expect_vector(position, channels, "channels")

    return check


def _check_group_normalization(operands: Operands) -> None:
    groups = operands.integer("num_groups")
    require(groups >= 1, f"attribute 'num_groups' is {groups} against at least 1")
    operands.expect_least_rank(0, 3)
    channels = operands.known(0)[1]
    require(not channels % groups, f"{channels} channels against a multiple of {groups} groups")
    is_per_channel = operands.opset >= _GROUP_PARAMETERS_PER_CHANNEL
    for position in (1, 2):
        operands.expect_vector(position, *((channels, "channels") if is_per_channel else (groups, "groups")))


def _check_last_axes(operands: Operands) -> None:
    normalised = operands.known(0)[operands.axis(-1) :]
    for position, shape in operands.known_shapes()[1:]:
        wanted = f"{shape_text(normalised)} normalised elements of {operands.label(0)}"
        require(broadcasts_to(shape, normalised), operands.against(position, wanted))


def _check_moments(operands: Operands) -> None:
    rank, axes = len(operands.known(0)), operands.integers("axes")
    operands.expect_least_rank(0, 1)
    require(axes != (), "attribute 'axes' is [] against at least one axis")
    for axis in _MOMENT_AXES if axes is None else ():
        operands.front_axis(axis, rank)


NORMALISATION_CHECKS: Mapping[str, Check] = {
    "BatchNormalization": _check_channel_parameters(2),
    "GroupNormalization": _check_group_normalization,
    "InstanceNormalization": _check_channel_parameters(3),
    "LayerNormalization": _check_last_axes,
    "MeanVarianceNormalization": _check_moments,
    "RMSNormalization": _check_last_axes,
}
