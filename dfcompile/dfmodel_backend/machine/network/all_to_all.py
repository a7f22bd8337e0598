"""All-to-all among every chip of a network: messages over the narrowest cut [ko24, section 4]."""

import math
from collections.abc import Sequence

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.machine.network.dimension_kind import DimensionKind
from dfcompile.dfmodel_backend.machine.network.dimensions.fully_connected import FULLY_CONNECTED
from dfcompile.dfmodel_backend.machine.network.dimensions.switch import SWITCH
from dfcompile.dfmodel_backend.machine.network.topologies import Topology
from dfcompile.errors import UserError


def all_to_all_ns_per_byte(
    shape: Topology, chips: Sequence[int], gb_per_s: Sequence[float], *, compat: Compatibility = RIGHT
) -> float:
    """Return the time per byte that each chip sends to each other: ``max_d messages_d / (B_d bandwidth_factor_d)``.

    Args:
        shape: of the network.
        chips: of a group, per dimension, innermost first.
        gb_per_s: of one link, per dimension.
        compat: flaws to repeat.

    Raises:
        UserError: not one extent and one bandwidth per dimension.
    """
    if not len(chips) == len(gb_per_s) == len(shape.kinds):
        raise UserError(
            f"topology {shape.name!r}: found {len(chips)} extents and {len(gb_per_s)} bandwidths "
            f"against {len(shape.kinds)} dimensions"
        )
    if math.prod(chips) == 1 and not compat.lone_chip_communicates:
        return 0.0
    crossing = crossing_messages(shape, chips, compat=compat)
    factors = bandwidth_factors(shape, chips, compat=compat)
    times = [
        messages / (bandwidth * factor)
        for count, messages, bandwidth, factor in zip(chips, crossing, gb_per_s, factors, strict=True)
        if factor and (count > 1 or compat.lone_chip_communicates)  # nothing crosses a dimension of one chip
    ]
    return max(times, default=0.0)


def exchange_ns_per_byte(shape: Topology, chips: Sequence[int], gb_per_s: Sequence[float]) -> float:
    """Return the time per byte of a whole tensor that lies in shares on the chips of a group and changes its layout.

    Each of ``n`` chips sends ``1 / n^2`` of the tensor to each other: over the narrowest cut, and out of its own
    ports (two of a ring, one to a switch, one to each other chip), of which it sends ``(N_d - 1) / N_d`` of its share
    through those along each dimension.
    """
    everyone = math.prod(chips)
    if everyone == 1:
        return 0.0
    own = max(
        (extent - 1) / extent / (kind.count("ports", extent) * bandwidth)
        for kind, extent, bandwidth in zip(shape.kinds, chips, gb_per_s, strict=True)
        if extent > 1
    )
    return max(all_to_all_ns_per_byte(shape, chips, gb_per_s) / everyone**2, own / everyone)


def crossing_messages(shape: Topology, chips: Sequence[int], *, compat: Compatibility = RIGHT) -> tuple[float, ...]:
    """Return how many messages cross the middle of each dimension.

    A cut through a grid, such as a torus, parts all ``n`` chips: ``n^2 / 4``. In a hierarchy it parts the ``g`` chips
    of one group and all inside: ``g^2 / 4``.
    """
    everyone = math.prod(chips)
    reach = [everyone if shape.is_grid else math.prod(chips[: dimension + 1]) for dimension in range(len(chips))]
    if compat.messages_of_all_pairs:
        return tuple(parted * (parted - 1) / 2 for parted in reach)
    return tuple(parted**2 / 4 for parted in reach)


def bandwidth_factors(shape: Topology, chips: Sequence[int], *, compat: Compatibility = RIGHT) -> tuple[float, ...]:
    """Return how many links cross the middle of each dimension: 2 of a ring, a port per chip, ``n^2 / 4`` of all."""
    if shape.is_grid:
        return tuple(_grid_factor(shape, chips, dimension, compat) for dimension in range(len(chips)))
    factors = [_group_factor(kind, extent, compat) for kind, extent in zip(shape.kinds, chips, strict=True)]
    if compat.outermost_bandwidth_quartered and shape.kinds[-1] is SWITCH:
        factors[-1] = chips[-1] / 4
    return tuple(factors)


def _grid_factor(shape: Topology, chips: Sequence[int], dimension: int, compat: Compatibility) -> float:
    """The links of each of the groups along the dimension, two of a ring; flaws are those of tori."""
    links = shape.kinds[dimension].count("cut", chips[dimension])
    groups = shape.groups(chips, dimension)
    if shape.is_torus and compat.torus_bisection_halved and len(chips) > 1:
        links = 1
    if shape.is_torus and compat.torus_bisection_of_other_dimension:
        # Written down for two and three dimensions: (x, y) and (x y, x z, y z), which are the rings in reverse order.
        groups = shape.groups(chips, len(chips) - 1 - dimension)
    return links * groups


def _group_factor(kind: DimensionKind, chips: int, compat: Compatibility) -> float:
    if kind is FULLY_CONNECTED and compat.fully_connected_bisection_of_all_links:
        return chips * (chips - 1) / 2
    return kind.count("cut", chips)
