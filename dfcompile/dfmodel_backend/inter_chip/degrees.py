"""Degrees of parallelism, which dimension carries which; micro-batches, tiles of the sequence; time of exchanges.

Degrees, the size of micro-batches and the number of tiles may be open in a design: here is every way to settle them.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial
from math import prod
from typing import assert_never

import numpy as np
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.machine.network import collective_times as times
from dfcompile.dfmodel_backend.machine.network.topologies import topology
from dfcompile.dfmodel_backend.machine.system import Collective, Link, Machine, extents
from dfcompile.dfmodel_backend.workload.design import Design, WorkloadKind
from dfcompile.errors import InfeasibleError, UserError
from dfcompile.records import replace

_ORDERS = (("TP", "PP"), ("TP", "DP"), ("PP", "DP"), ("TP", "PP", "DP"), ("SP", "TP", "PP", "DP"))


class Degrees(Struct, frozen=True):
    """Chips per tensor (TP), pipeline (PP), data (DP) and sequence (SP) parallel group, and the links of each."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    sequence: int = 1
    tensor_link: Link | None = None
    pipeline_link: Link | None = None
    data_link: Link | None = None
    sequence_link: Link | None = None


def degrees_of(design: Design) -> Degrees:
    """Return the degrees that a design gives.

    Raises:
        UserError: a degree is 0, an unknown or badly ordered parallelism, or a product that is not the chips.
    """
    machine, batch = design.machine, design.execution.batch
    per_copy = machine.chips // batch.copies
    if batch.copies * per_copy != machine.chips:
        raise UserError(f"design: found num_copy {batch.copies} against a divisor of {machine.chips} chips")
    chips = [link.chips for link in machine.links]
    if prod(chips) != per_copy:
        raise UserError(f"topology {machine.topology}: found {' x '.join(map(str, chips))} chips against {per_copy}")
    match batch.kind:
        case WorkloadKind.DLRM:
            return Degrees(data=per_copy)
        case WorkloadKind.HPL | WorkloadKind.FFT:
            return Degrees()
        case WorkloadKind.LLM:
            return _language_model_degrees(machine)
    assert_never(batch.kind)


def _language_model_degrees(machine: Machine) -> Degrees:
    links = machine.links
    order = tuple(link.parallelism for link in links)
    if len(order) == 1 and order[0] not in ("TP", "PP", "DP"):
        raise UserError(f"topology {machine.topology}: found parallelism {order[0]!r} against TP, PP or DP")
    if len(order) > 1 and order not in _ORDERS:
        raise UserError(
            f"topology {machine.topology}: found parallelism {', '.join(order)} against TP, PP, DP in order"
        )
    by_name = dict(zip(order, links, strict=True))
    tensor, pipeline, data, sequence = (by_name.get(name) for name in ("TP", "PP", "DP", "SP"))

    def chips(link: Link | None) -> int:
        return 1 if link is None else link.chips

    return Degrees(chips(tensor), chips(pipeline), chips(data), chips(sequence), tensor, pipeline, data, sequence)


def micro_batches(design: Design, degrees: Degrees) -> Fraction:
    """Return the number of micro-batches; a free size counts as 1.

    Raises:
        UserError: the batch is no whole number of them.
    """
    batch = design.execution.batch
    match batch.kind:
        case WorkloadKind.HPL | WorkloadKind.FFT:
            return Fraction(1)
        case WorkloadKind.LLM | WorkloadKind.DLRM:
            size = max(1, batch.micro_batch)
            count = Fraction(batch.global_batch, size * degrees.data)
            if count.denominator != 1:
                raise UserError(
                    f"field 'execution.{batch.kind}.global_batch_size': found {batch.global_batch} against a multiple "
                    f"of micro_batch_size x DP = {size} x {degrees.data}"
                )
            return count
    assert_never(batch.kind)


def micro_batch_sizes(design: Design, degrees: Degrees) -> tuple[int, ...]:
    """Return the sizes to choose from: the given one, or every divisor of what a data parallel group gets."""
    batch = design.execution.batch
    if batch.micro_batch or batch.kind is not WorkloadKind.LLM:
        return (batch.micro_batch,)
    if batch.global_batch % degrees.data:
        return ()
    share = batch.global_batch // degrees.data
    small = [size for size in range(1, int(share**0.5) + 1) if share % size == 0]
    return tuple(sorted({*small, *(share // size for size in small)}))


def degree_choices(design: Design, compatibility: Compatibility) -> tuple[Design, ...]:
    """Return the design once per choice of the chips along each dimension that it leaves open.

    Choices whose tensor parallel chips would share a head, or whose batch is no whole number of micro-batches, are
    left out where there is a choice.

    Raises:
        UserError: the given degrees do not fit the chips.
        InfeasibleError: there is only one choice, and its chips would share a head, or no choice is possible.
    """
    if all(link.chips for link in design.machine.links):
        degrees_of(design)
        require_whole_heads(design, compatibility)
        return (design,)
    found = []
    for chips in _factors(design):
        links = tuple(replace(link, chips=count) for link, count in zip(design.machine.links, chips, strict=True))
        chosen = replace(design, machine=replace(design.machine, links=links))
        degrees = degrees_of(chosen)
        if not micro_batch_sizes(chosen, degrees) or chosen.execution.batch.global_batch % degrees.data:
            continue
        try:
            require_whole_heads(chosen, compatibility)
        except InfeasibleError:
            continue
        found.append(chosen)
    if not found:
        raise InfeasibleError(
            f"topology {design.machine.topology}: no degrees of parallelism share {design.machine.chips} chips so that "
            "TP divides the heads and DP the batch (another num_chip, or degrees of your own)"
        )
    return tuple(found)


def _factors(design: Design) -> Iterator[tuple[int, ...]]:
    """Yield chips per dimension: given ones as they are, open ones so that the product is a copy's chips."""
    given = [link.chips for link in design.machine.links]
    rest = design.machine.chips // design.execution.batch.copies
    for chips in given:
        if chips and rest % chips:
            raise UserError(
                f"topology {design.machine.topology}: found {chips} chips along a dimension against a divisor of {rest}"
            )
        rest //= chips or 1
    for filled in extents(rest, (rest,) * given.count(0)):
        numbers = iter(filled)
        yield tuple(chips or next(numbers) for chips in given)


def require_whole_heads(design: Design, compatibility: Compatibility) -> None:
    """Check that tensor parallel chips share whole heads of attention.

    Raises:
        InfeasibleError: naming the kernel, and the nearest degree that divides its heads.
    """
    if compatibility.heads_may_be_cut or design.execution.batch.kind is not WorkloadKind.LLM:
        return
    tensor = degrees_of(design).tensor
    for kernel in design.kernels:
        if kernel.outer > 1 and kernel.outer % tensor:
            fitting = max(degree for degree in range(1, tensor + 1) if kernel.outer % degree == 0)
            raise InfeasibleError(
                f"kernel {kernel.name!r}: found TP {tensor} against a divisor of its {kernel.outer} heads "
                f"(TP {fitting} divides them; --compat dfmodel cuts heads)"
            )


def micro_batch_choices(design: Design, compatibility: Compatibility) -> tuple[Design, ...]:
    """Return the design once per micro-batch size; where weights cost no traffic the smallest is never worse."""
    sizes = micro_batch_sizes(design, degrees_of(design))
    if compatibility.weights_not_read and compatibility.gradients_not_kept:
        sizes = sizes[:1]
    batches = (replace(design.execution.batch, micro_batch=size) for size in sizes)
    return tuple(replace(design, execution=replace(design.execution, batch=batch)) for batch in batches)


def tile_counts(design: Design, compatibility: Compatibility) -> tuple[int, ...]:
    """Return every tile count that is the smallest with some size of tile; 1 if the sequence is not cut."""
    batch = design.execution.batch
    sequence = -(-batch.sequence // degrees_of(design).sequence)
    if not sequence:
        return (1,)
    if batch.tile and not compatibility.tile_size_is_a_hint:
        return (-(-sequence // batch.tile),)
    return tuple(sorted({-(-sequence // size) for size in range(1, min(batch.tile or sequence, sequence) + 1)}))


class Exchanged(Struct, frozen=True):
    """What each kernel exchanges, with the edges that start at it; one entry per kernel."""

    sizes: Mapping[Collective, Column]  # bytes, of a tile but for what comes once a batch
    sequence_sizes: Mapping[Collective, Column]  # bytes of a tile, in the sequence parallel group
    reductions: Column  # how many all-reduces
    gathers: Column  # how many all-gathers and all-to-alls


class ExchangeNs(Struct, frozen=True):
    """Times of each kernel that add up over kernels: per tile, and whatever the number of tiles."""

    per_tile: Column
    once: Column


class NetworkTime:
    """Times per byte on the network of a design."""

    def __init__(self, design: Design, degrees: Degrees, compatibility: Compatibility) -> None:
        self._design = design
        self._degrees = degrees
        self._compatibility = compatibility
        separate = design.execution.separate_reduce_scatter
        self._ns_per_byte = partial(times.ns_per_byte, separate_phases=separate, compat=compatibility)
        self._domain_ns_per_byte = partial(
            times.domain_ns_per_byte,
            innermost=design.machine.links[0],
            domain_chips=design.machine.domain_chips,
            separate_phases=separate,
            compat=compatibility,
        )
        self._has_domain = design.machine.domain_chips > 0 and len(design.machine.links) == 3
        self._tensor = self._ratios(degrees.tensor_link)
        self._sequence = self._ratios(degrees.sequence_link)
        self._latency_ns = self._hops_ns(compatibility, separate_phases=separate)
        once = replace(compatibility, all_reduce_factor=1)
        self._gather_ns = 0.0 if compatibility.gathers_without_latency else self._hops_ns(once, separate_phases=False)
        self._periodic_ns_per_byte = self._periodic_ratio()

    def parts(self, found: Exchanged) -> tuple[ExchangeNs, ...]:
        """Return the times of what is exchanged at the same time."""
        kind, links = self._design.execution.batch.kind, self._design.machine.links
        nothing = np.zeros_like(found.reductions)
        periodic = found.sizes[Collective.ALL_REDUCE_PERIODIC] * self._periodic_ns_per_byte
        if kind is WorkloadKind.LLM:
            latency = found.reductions * self._latency_ns + found.gathers * self._gather_ns
            tensor = nothing + sum(found.sizes[one] * ratio for one, ratio in self._tensor.items())
            if self._compatibility.network_is_sum:
                return (ExchangeNs(tensor, latency + periodic),)
            along = nothing + sum(size * self._sequence[one] for one, size in found.sequence_sizes.items())
            return ExchangeNs(tensor, latency), ExchangeNs(nothing, periodic), ExchangeNs(along, nothing)
        if kind is WorkloadKind.HPL:
            handed = found.sizes[Collective.POINT_TO_POINT] / links[0].gb_per_s
            spread = found.sizes[Collective.BROADCAST] / links[-1].gb_per_s
            return ExchangeNs(nothing, handed), ExchangeNs(nothing, spread)
        machine, compatibility = self._design.machine, self._compatibility
        chips, gb_per_s = [link.chips for link in links], [link.gb_per_s for link in links]
        exchange_ns = times.all_to_all_ns_per_byte(topology(machine.topology), chips, gb_per_s, compat=compatibility)
        if kind is WorkloadKind.DLRM and not compatibility.all_to_all_as_given:  # a file gives the sum of one chip
            exchange_ns /= self._degrees.data
        return (ExchangeNs(nothing, found.sizes[Collective.ALL_TO_ALL] * exchange_ns + periodic),)

    def ratio_ns_per_byte(self, collective: Collective) -> float:
        """Return the time per byte of a collective in the tensor parallel group."""
        return self._tensor.get(collective, 0.0)

    def _ratios(self, link: Link | None) -> dict[Collective, float]:
        wanted = (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.ALL_TO_ALL)
        if link is None or link.chips <= 1:
            return dict.fromkeys(wanted, 0.0)
        ratios = {collective: self._ns_per_byte(collective, link) for collective in wanted}
        if not self._compatibility.layouts_change_by_share:
            ratios[Collective.ALL_TO_ALL] = times.exchange_ns_per_byte(
                topology(link.shape), [link.chips], [link.gb_per_s]
            )
        if self._has_domain and link is self._degrees.tensor_link:
            between = replace(self._design.machine.links[1], chips=link.chips)
            ratios[Collective.ALL_REDUCE] = self._domain_ns_per_byte(Collective.ALL_REDUCE, between)
        return ratios

    def latency_ns(self, collective: Collective) -> float:
        """Return the latency of the links that one collective in the tensor parallel group passes."""
        return self._latency_ns if collective is Collective.ALL_REDUCE else self._gather_ns

    def _hops_ns(self, compatibility: Compatibility, *, separate_phases: bool) -> float:
        machine, link = self._design.machine, self._degrees.tensor_link
        if link is None or link.chips <= 1 or (self._has_domain and machine.domain_chips < link.chips):
            return 0.0
        return times.all_reduce_latency_ns(
            link, machine.link_latency_ns, separate_phases=separate_phases, compat=compatibility
        )  # fmt: skip

    def _periodic_ratio(self) -> float:
        """Return the time per byte of the all-reduce of gradients."""
        execution, link = self._design.execution, self._degrees.data_link
        match execution.batch.kind:
            case WorkloadKind.LLM:
                if link is None or link.chips <= 1:
                    return 0.0
                per_byte = self._domain_ns_per_byte if self._has_domain else self._ns_per_byte
                return per_byte(Collective.ALL_REDUCE_PERIODIC, link)
            case WorkloadKind.DLRM | WorkloadKind.HPL | WorkloadKind.FFT:
                separate, links = execution.separate_reduce_scatter, self._design.machine.links
                return times.everywhere_ns_per_byte(links, separate_phases=separate, compat=self._compatibility)
        assert_never(execution.batch.kind)
