"""Time per byte of collectives and all-to-alls in a group of chips, along dimensions [ko24, section 4]."""

import math
from collections.abc import Sequence
from typing import Literal, assert_never

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.machine.network.dimension_kind import FULLY_CONNECTED, RING, SWITCH, DimensionKind
from dfcompile.dfmodel_backend.machine.network.topologies import Topology, dimension_kinds
from dfcompile.dfmodel_backend.machine.system import Collective, Link
from dfcompile.errors import UserError

Reduction = Literal[Collective.ALL_REDUCE, Collective.ALL_REDUCE_PERIODIC]


def ns_per_byte(
    collective: Collective, group: Link, *, separate_phases: bool = False, compat: Compatibility = RIGHT
) -> float:
    """Return the time per byte of the whole tensor.

    With ``N`` chips, links of ``B`` bytes per ns and ``f`` phases (2 with ``separate_phases``, else 1):

    - `Collective.ALL_REDUCE`, `Collective.ALL_REDUCE_PERIODIC`: ``f (N-1) / (N B)``, fully connected ``f / (N B)``
    - `Collective.ALL_GATHER`: the same with ``f = 1``
    - `Collective.ALL_TO_ALL`: ring ``N^2 / (8 B)``, switch ``N / (4 B)``, fully connected ``1 / B``
    - `Collective.POINT_TO_POINT`, `Collective.BROADCAST`: ``1 / B``

    Groups of other kinds take what their `DimensionKind` says.

    Raises:
        UserError: a group of an unknown shape, without chips or without bandwidth.
    """
    kind = kind_of(group)
    if collective is Collective.NONE or (group.chips == 1 and not compat.lone_chip_communicates):
        return 0.0
    phases = 1
    if collective is Collective.ALL_REDUCE or collective is Collective.ALL_REDUCE_PERIODIC:
        phases = _phases(collective, kind, compat, separate=separate_phases)
    return phases * once_ns_per_byte(collective, kind, group.chips, group.gb_per_s)


def once_ns_per_byte(collective: Collective, kind: DimensionKind, chips: int, gb_per_s: float) -> float:
    """Return the time per byte of a collective in a group of a kind; of an all-reduce, of one phase.

    Args:
        collective: of whole tensors, but for all-to-alls: of what each chip sends to each other.
        kind: of the group.
        chips: of the group.
        gb_per_s: of a link.
    """
    match collective:
        case Collective.NONE:
            return 0.0
        case Collective.ALL_REDUCE | Collective.ALL_REDUCE_PERIODIC | Collective.ALL_GATHER:
            return kind.all_gather_ns_per_byte(chips, gb_per_s)
        case Collective.ALL_TO_ALL:
            return kind.all_to_all_ns_per_byte(chips, gb_per_s)
        case Collective.POINT_TO_POINT:
            return kind.count("sent_once", chips) / gb_per_s
        case Collective.BROADCAST:
            return kind.count("broadcast", chips) / gb_per_s
    assert_never(collective)


def _phases(collective: Reduction, kind: DimensionKind, compat: Compatibility, *, separate: bool) -> int:
    """How often a reduction goes around: once or, as scatter and gather, twice."""
    chosen = 2 if separate else 1
    if collective is Collective.ALL_REDUCE:
        return compat.all_reduce_factor or chosen
    if kind is FULLY_CONNECTED and compat.periodic_factor_ignored_when_fully_connected:
        return 1
    return compat.periodic_factor or chosen


def domain_ns_per_byte(
    collective: Reduction,
    group: Link,
    innermost: Link,
    domain_chips: int,
    *,
    separate_phases: bool = False,
    compat: Compatibility = RIGHT,
) -> float:
    """Return the time per byte of an all-reduce whose group lies in high-bandwidth domains.

    Domains of ``domain_chips`` chips have the links of the innermost dimension. A group that fits reduces in one
    domain, a larger one first in each domain and then its share of the bytes between domains.

    Args:
        collective: `Collective.ALL_REDUCE` along the innermost, `Collective.ALL_REDUCE_PERIODIC` along the outermost
            of three dimensions.
        group: chips that reduce; its bandwidth is that of the links *between* domains (those of the second dimension
            for the innermost group, those of its own dimension for the outermost).
        innermost: the innermost dimension, whose kind and bandwidth hold inside a domain.
        domain_chips: chips of a domain.
        separate_phases: reduce-scatter and all-gather one after the other.
        compat: flaws to repeat.

    Raises:
        UserError: no chips in a domain.
    """
    if domain_chips < 1:
        raise UserError(f"high-bandwidth domain: found {domain_chips} chips against at least 1")
    inside, outside = kind_of(innermost), kind_of(group)
    phases = [_phases(collective, kind, compat, separate=separate_phases) for kind in (inside, outside)]
    if compat.domain_ignores_factor_and_kind:
        inside = outside = RING
        phases = [1, 1]
    near = min(domain_chips, group.chips)
    time = phases[0] * inside.all_gather_ns_per_byte(near, innermost.gb_per_s) if near > 1 else 0.0
    if domain_chips >= group.chips:
        return time
    shares = outside.count("gathered_shares", group.chips / domain_chips)
    return time + phases[1] * shares / (group.chips * group.gb_per_s)


def all_reduce_latency_ns(
    group: Link, link_latency_ns: float, *, separate_phases: bool = False, compat: Compatibility = RIGHT
) -> float:
    """Return the latency of the hops of one all-reduce: ``f (N - 1)`` links, ``f`` where all chips are neighbours."""
    kind = kind_of(group)
    if group.chips == 1 and not compat.lone_chip_communicates:
        return 0.0
    phases = _phases(Collective.ALL_REDUCE, kind, compat, separate=separate_phases)
    return link_latency_ns * phases * kind.count("hops", group.chips)


def everywhere_ns_per_byte(
    groups: Sequence[Link], *, separate_phases: bool = False, compat: Compatibility = RIGHT
) -> float:
    """Return the time per byte of a gradient all-reduce over every chip of a network, innermost dimension first.

    Each dimension reduces what the inner ones left to each chip: ``sum_d r_d / (N_0 ... N_(d-1))``.
    """
    if compat.periodic_bandwidth_forgotten:
        return float(compat.periodic_factor or 1)
    time, share = 0.0, 1
    for group in groups:
        one = ns_per_byte(Collective.ALL_REDUCE_PERIODIC, group, separate_phases=separate_phases, compat=compat)
        time += one / share
        share *= group.chips
    return time


def kind_of(group: Link) -> DimensionKind:
    """Return how the chips of a group are wired.

    Raises:
        UserError: a group of an unknown shape, without chips or without bandwidth.
    """
    known = dimension_kinds()
    if group.shape not in known.by_name:
        broken = "".join(f"; {fault}" for fault in known.faults)
        raise UserError(f"group of chips: found shape {group.shape!r} against {', '.join(known.by_name)}{broken}")
    if group.chips < 1:
        raise UserError(f"group of chips: found {group.chips} chips against at least 1")
    if group.gb_per_s <= 0:
        raise UserError(f"group of chips: found links of {group.gb_per_s} GB/s against more than 0")
    return known.by_name[group.shape]


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
    of_all = compat.fully_connected_bisection_of_all_links
    factors = [
        extent * (extent - 1) / 2 if of_all and kind is FULLY_CONNECTED else kind.count("cut", extent)
        for kind, extent in zip(shape.kinds, chips, strict=True)
    ]
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
