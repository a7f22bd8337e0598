"""Time per byte of collectives in a group of chips along one dimension of the network [ko24, section 4]."""

from collections.abc import Sequence
from dataclasses import replace

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.machine.machine import Collective, Link
from dfcompile.dfmodel_backend.machine.network.topologies import DimensionKind
from dfcompile.errors import UserError


def ns_per_byte(
    collective: Collective, group: Link, *, separate_phases: bool = False, compat: Compatibility = RIGHT
) -> float:
    """Return the time per byte of the whole tensor.

    With ``N`` chips, links of ``B`` bytes per ns and ``f`` phases (2 with ``separate_phases``, else 1):

    - `Collective.ALL_REDUCE`, `Collective.ALL_REDUCE_PERIODIC`: ``f (N-1) / (N B)``, fully connected ``f / (N B)``
    - `Collective.ALL_GATHER`: the same with ``f = 1``
    - `Collective.ALL_TO_ALL`: ring ``N^2 / (8 B)``, switch ``N / (4 B)``, fully connected ``1 / B``
    - `Collective.POINT_TO_POINT`, `Collective.BROADCAST`: ``1 / B``

    Raises:
        UserError: a group of an unknown shape, without chips or without bandwidth.
    """
    _check_group(group)
    if collective is Collective.NONE or (group.chips == 1 and not compat.lone_chip_communicates):
        return 0.0
    if collective in (Collective.POINT_TO_POINT, Collective.BROADCAST):
        return 1 / group.gb_per_s
    if collective is Collective.ALL_TO_ALL:
        return _all_to_all_ns_per_byte(group)
    return _phases(collective, group.shape, separate_phases, compat) * _gather_ns_per_byte(group)


def _phases(collective: Collective, shape: str, separate_phases: bool, compat: Compatibility) -> int:  # noqa: FBT001
    """How often a collective goes around: a gather once, a reduction once or, as scatter and gather, twice."""
    chosen = 2 if separate_phases else 1
    if collective is Collective.ALL_REDUCE:
        return compat.all_reduce_factor or chosen
    if collective is Collective.ALL_REDUCE_PERIODIC:
        if shape == DimensionKind.FULLY_CONNECTED and compat.periodic_factor_ignored_when_fully_connected:
            return 1
        return compat.periodic_factor or chosen
    return 1


def _gather_ns_per_byte(group: Link) -> float:
    if group.shape == DimensionKind.FULLY_CONNECTED:
        return 1 / (group.chips * group.gb_per_s)
    return (group.chips - 1) / (group.chips * group.gb_per_s)


def _all_to_all_ns_per_byte(group: Link) -> float:
    """``N^2 / 4`` messages cross the cut: two links of a ring, a port per chip, or all links between the halves."""
    if group.shape == DimensionKind.RING:
        return group.chips**2 / (8 * group.gb_per_s)
    if group.shape == DimensionKind.SWITCH:
        return group.chips / (4 * group.gb_per_s)
    return 1 / group.gb_per_s


def domain_ns_per_byte(
    collective: Collective,
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
    _check_group(group)
    inside, outside = innermost.shape, group.shape
    if compat.domain_ignores_factor_and_kind:
        inside = outside = DimensionKind.RING.value
        phases = (1, 1)
    else:
        phases = (
            _phases(collective, inside, separate_phases, compat),
            _phases(collective, outside, separate_phases, compat),
        )
    near = min(domain_chips, group.chips)
    within = replace(innermost, shape=inside, chips=near)
    time = phases[0] * _gather_ns_per_byte(within) if near > 1 else 0.0
    if domain_chips >= group.chips:
        return time
    domains = group.chips / domain_chips
    hops = 1.0 if outside == DimensionKind.FULLY_CONNECTED else domains - 1
    return time + phases[1] * hops / (group.chips * group.gb_per_s)


def all_reduce_latency_ns(
    group: Link, link_latency_ns: float, *, separate_phases: bool = False, compat: Compatibility = RIGHT
) -> float:
    """Return the latency of the hops of one all-reduce: ``f (N - 1)`` links, ``f`` where all chips are neighbours."""
    _check_group(group)
    if group.chips == 1 and not compat.lone_chip_communicates:
        return 0.0
    hops = 1 if group.shape == DimensionKind.FULLY_CONNECTED else group.chips - 1
    return link_latency_ns * _phases(Collective.ALL_REDUCE, group.shape, separate_phases, compat) * hops


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
        time += (
            ns_per_byte(Collective.ALL_REDUCE_PERIODIC, group, separate_phases=separate_phases, compat=compat) / share
        )
        share *= group.chips
    return time


def _check_group(group: Link) -> None:
    if group.shape not in tuple(DimensionKind):
        raise UserError(f"group of chips: found shape {group.shape!r} against r, sw or fc")
    if group.chips < 1:
        raise UserError(f"group of chips: found {group.chips} chips against at least 1")
    if group.gb_per_s <= 0:
        raise UserError(f"group of chips: found links of {group.gb_per_s} GB/s against more than 0")
