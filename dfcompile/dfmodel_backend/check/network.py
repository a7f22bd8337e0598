"""Recomputes how long chips exchange, from tables of collectives [ko24]; shares no formula with the evaluator.

The evaluator has rules for dimensions and builds networks of them; here each of the twelve networks is written down.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.machine.machine import Collective, Link
from dfcompile.dfmodel_backend.workload.design import Design, DesignKernel, Dim, WorkloadKind

Extents = Callable[[DesignKernel], tuple[int, int, int]]  # rows, k, columns of one tile on one chip

# Layout of a tensor by the split dimension of its kernel, in the order O, M, K, N, none.
_SPLITS = (Dim.OUTER, Dim.M, Dim.K, Dim.N, Dim.NONE)
_GIVEN = ("SR", "SR", "RR", "RS", "RR")
_NEEDED = MappingProxyType(
    {
        "elementwise": ("SR", "SR", "RR", "RS", "RR"),
        "first": ("SR", "RR", "SR", "RS", "RR"),
        "second": ("SR", "SR", "RS", "RR", "RR"),
        "weight update": ("SR", "SR", "RS", "SR", "RR"),
    }
)

# Links that cross the middle of each dimension, given its chips w, x, y, z from the inside out.
Cut = Callable[..., tuple[float, ...]]
_CUTS: Mapping[str, Cut] = MappingProxyType(
    {
        "r": lambda _: (2,),
        "sw": lambda x: (x,),
        "fc": lambda x: (x * x / 4,),
        "r_r": lambda x, y: (2 * y, 2 * x),
        "r_fc": lambda _, y: (2, y * y / 4),
        "r_sw": lambda _, y: (2, y),
        "sw_sw": lambda x, y: (x, y),
        "fc_fc": lambda x, y: (x * x / 4, y * y / 4),
        "r_r_r": lambda x, y, z: (2 * y * z, 2 * x * z, 2 * x * y),
        "r_sw_sw": lambda _, y, z: (2, y, z),
        "sw_sw_sw": lambda x, y, z: (x, y, z),
        "r_r_r_r": lambda w, x, y, z: (2 * x * y * z, 2 * w * y * z, 2 * w * x * z, 2 * w * x * y),
    }
)
_TORI = ("r", "r_r", "r_r_r", "r_r_r_r")


def network_time_ns(
    design: Design,
    sharding: Mapping[int, Dim],
    inside: Sequence[DesignKernel],
    extents: Extents,
    tiles: int,
    compatibility: Compatibility,
) -> float:
    """Return how long the chips exchange in a configuration.

    Args:
        design: with all its degrees.
        sharding: split dimension by kernel id.
        inside: kernels of the configuration.
        extents: of a kernel on one chip.
        tiles: that the configuration runs.
        compatibility: flaws to repeat.
    """
    kind = design.execution.batch.kind
    if kind is WorkloadKind.LLM:
        return _language_model_ns(design, sharding, inside, extents, tiles, compatibility)
    links = design.machine.links
    chips = [link.chips for link in links]
    everyone = math.prod(chips)
    if kind is WorkloadKind.HPL:
        columns = chips[-1]
        rows = everyone // columns if len(chips) > 1 else 1
        sent = [kernel.collective_bytes for kernel in inside if kernel.collective is not Collective.NONE]
        handed = [kernel.collective_bytes for kernel in inside if kernel.collective_2 is Collective.POINT_TO_POINT]
        across = sum(sent) / rows if rows > 1 else 0.0
        down = sum(handed) / columns if columns > 1 else 0.0
        return max(down / links[0].gb_per_s, across / links[-1].gb_per_s)
    exchanged = _given(inside, Collective.ALL_TO_ALL)
    if kind is WorkloadKind.FFT:
        exchanged /= everyone**2
    elif not compatibility.all_to_all_as_given:
        exchanged /= everyone
    total = exchanged * exchange_ns_per_byte(design.machine.topology, links, compatibility)
    gradients = _given(inside, Collective.ALL_REDUCE_PERIODIC)
    if kind is WorkloadKind.DLRM:
        gradients /= design.execution.batch.global_batch / everyone
    return total + gradients * _everywhere(design, compatibility)


def _given(inside: Sequence[DesignKernel], collective: Collective) -> float:
    return sum((kernel.collective_bytes for kernel in inside if kernel.collective is collective), 0.0)


def exchange_ns_per_byte(topology: str, links: Sequence[Link], compatibility: Compatibility) -> float:
    """Return the time in which each chip of a network sends a byte to each other, by its narrowest cut."""
    chips = [link.chips for link in links]
    everyone = math.prod(chips)
    if everyone == 1 and not compatibility.lone_chip_communicates:
        return 0.0
    crossing = list(_CUTS[topology](*chips))
    is_torus = topology in _TORI
    if is_torus and compatibility.torus_bisection_of_other_dimension:
        crossing.reverse()
    if is_torus and len(chips) > 1 and compatibility.torus_bisection_halved:
        crossing = [links_cut / 2 for links_cut in crossing]
    shapes = topology.split("_")
    if compatibility.fully_connected_bisection_of_all_links:
        pairs = [count * (count - 1) / 2 for count in chips]
        crossing = [pairs[d] if shapes[d] == "fc" else cut for d, cut in enumerate(crossing)]
    if shapes[-1] == "sw" and compatibility.outermost_bandwidth_quartered:
        crossing[-1] /= 4
    slowest = 0.0
    parted = 1
    for dimension, link in enumerate(links):
        parted *= link.chips
        if not crossing[dimension] or (link.chips == 1 and not compatibility.lone_chip_communicates):
            continue
        count = everyone if is_torus else parted
        messages = count * (count - 1) / 2 if compatibility.messages_of_all_pairs else count * count / 4
        slowest = max(slowest, messages / crossing[dimension] / link.gb_per_s)
    return slowest


def _language_model_ns(
    design: Design,
    sharding: Mapping[int, Dim],
    inside: Sequence[DesignKernel],
    extents: Extents,
    tiles: int,
    compatibility: Compatibility,
) -> float:
    groups = {link.parallelism: link for link in design.machine.links if link.chips > 1}
    tensor, data, sequence = groups.get("TP"), groups.get("DP"), groups.get("SP")
    by_share = compatibility.layouts_change_by_share
    parts = tensor.chips if tensor is not None and not by_share else 1
    sent = _sent(design, sharding, inside, extents, is_split=tensor is not None)
    split = {kernel.id for kernel in inside if sharding.get(kernel.id) in (Dim.OUTER, Dim.M, Dim.N)}
    factor = _factor(design, compatibility.all_reduce_factor)
    within = between = along = 0.0
    if tensor is not None:
        around = _once_around(tensor.shape, tensor.chips) / tensor.gb_per_s
        within = tiles * (
            _total(sent, Collective.ALL_REDUCE) * _tensor_reduction(design, tensor, factor, compatibility)
            + _whole(sent, Collective.ALL_GATHER, split, parts) * around
            + _whole(sent, Collective.ALL_TO_ALL, split, parts) * _exchange_in_group(tensor, by_share=by_share)
        )
        if len(design.machine.links) != 3 or not 0 < design.machine.domain_chips < tensor.chips:
            hops = 1 if tensor.shape == "fc" else tensor.chips - 1
            reductions = sum(kind is Collective.ALL_REDUCE for _, kind, _ in sent)
            within += reductions * design.machine.link_latency_ns * factor * hops
    if data is not None:
        batch = design.execution.batch
        gradients = sum(
            size * (1 if compatibility.weights_of_one_tile else _tiles_of_output(kernel, tiles))
            for kernel, kind, size in sent
            if kind is Collective.ALL_REDUCE_PERIODIC
        )
        micro_batches = batch.global_batch / (max(1, batch.micro_batch) * data.chips)
        between = gradients / micro_batches * _data_reduction(design, data, compatibility)
    if compatibility.network_is_sum:
        return within + between
    if sequence is not None:
        around = _once_around(sequence.shape, sequence.chips) / sequence.gb_per_s
        for kernel in inside:
            rows, _, columns = extents(kernel)
            rounds = {Collective.ALL_REDUCE: factor, Collective.ALL_GATHER: 1}.get(kernel.collective_2, 0)
            along += tiles * around * rounds * rows * columns * design.execution.word_bytes
    return max(within, between, along)


Sent = tuple[DesignKernel, Collective, float]  # whose output, how, bytes of a tile


def _sent(
    design: Design, sharding: Mapping[int, Dim], inside: Sequence[DesignKernel], extents: Extents, *, is_split: bool
) -> list[Sent]:
    """Return what kernels exchange, and what changes its layout behind them."""
    conversions = _conversions(design, sharding)
    found = []
    for kernel in inside:
        rows, _, columns = extents(kernel)
        size = rows * columns * design.execution.word_bytes
        kinds = [needed for giver, needed in conversions if giver == kernel.id]
        if kernel.collective is not Collective.NONE:
            kinds.append(kernel.collective)
        elif is_split and sharding.get(kernel.id) is Dim.K:
            kinds.append(Collective.ALL_REDUCE)
        found += [(kernel, kind, float(size)) for kind in kinds]
    return found


def _total(sent: Sequence[Sent], collective: Collective) -> float:
    return sum((size for _, kind, size in sent if kind is collective), 0.0)


def _whole(sent: Sequence[Sent], collective: Collective, split: set[int], parts: int) -> float:
    """Return the bytes of whole tensors, of which those of split kernels lie in parts."""
    return sum((size * (parts if kernel.id in split else 1) for kernel, kind, size in sent if kind is collective), 0.0)


def _tiles_of_output(kernel: DesignKernel, tiles: int) -> int:
    return tiles if kernel.tiling in (Dim.OUTER, Dim.M, Dim.N) and not kernel.num_input else 1


def _conversions(design: Design, sharding: Mapping[int, Dim]) -> list[tuple[int, Collective]]:
    """Return, per edge that changes a layout, the id of its giver and what changes it."""
    if not design.shards_kernels:
        return []
    kernels = {kernel.id: kernel for kernel in design.kernels}
    found = []
    for edge in design.edges:
        giver, taker = kernels[edge.source], kernels[edge.target]
        given = _GIVEN[_SPLITS.index(sharding.get(giver.id, Dim.NONE))]
        row = "first"
        if not taker.variant.is_gemm:
            row = "elementwise"
        elif taker.tiling is Dim.K:
            row = "weight update"
        elif taker.variant is KernelVariant.GEMM_INPUT1_INPUT2 and giver.output_bytes != taker.input_1_bytes:
            row = "second" if giver.output_bytes == taker.input_2_bytes else "first"
        needed = _NEEDED[row][_SPLITS.index(sharding.get(taker.id, Dim.NONE))]
        if given != "RR" and given != needed:
            found.append((giver.id, Collective.ALL_GATHER if needed == "RR" else Collective.ALL_TO_ALL))
    return found


def _factor(design: Design, fixed: int) -> int:
    """Return how often a reduction goes around: twice if scatter and gather follow one another."""
    return fixed or 1 + design.execution.separate_reduce_scatter


def _once_around(shape: str, chips: float) -> float:
    """Return the part of a tensor that a chip sends while it goes around once."""
    return 1 / chips if shape == "fc" else (chips - 1) / chips


def _exchange_in_group(link: Link, *, by_share: bool) -> float:
    """Return the time per byte of an all-to-all, of a chip's share or of a whole tensor.

    Of a whole tensor a quarter crosses the middle of a ring, over two links; through a switch each chip sends all of
    its share but its own part; fully connected, each pair has a link for its part.
    """
    count, bandwidth = link.chips, link.gb_per_s
    if by_share:
        return {"r": count * count / 8, "sw": count / 4, "fc": 1.0}[link.shape] / bandwidth
    return {"r": 1 / 8, "sw": (count - 1) / count**2, "fc": 1 / count**2}[link.shape] / bandwidth


def _tensor_reduction(design: Design, tensor: Link, factor: int, compatibility: Compatibility) -> float:
    links, domain = design.machine.links, design.machine.domain_chips
    if domain and len(links) == 3:
        far = Link(links[1].shape, tensor.chips, links[1].gb_per_s, "", 0.0)
        return _in_domains(links[0], far, domain, (factor, factor), compatibility)
    return factor * _once_around(tensor.shape, tensor.chips) / tensor.gb_per_s


def _data_reduction(design: Design, data: Link, compatibility: Compatibility) -> float:
    links, domain = design.machine.links, design.machine.domain_chips
    if domain and len(links) == 3:
        factors = (_periodic(design, links[0].shape, compatibility), _periodic(design, data.shape, compatibility))
        return _in_domains(links[0], data, domain, factors, compatibility)
    return _periodic(design, data.shape, compatibility) * _once_around(data.shape, data.chips) / data.gb_per_s


def _periodic(design: Design, shape: str, compatibility: Compatibility) -> int:
    if shape == "fc" and compatibility.periodic_factor_ignored_when_fully_connected:
        return 1
    return _factor(design, compatibility.periodic_factor)


def _in_domains(near: Link, far: Link, domain: int, factors: tuple[int, int], compatibility: Compatibility) -> float:
    """Return the time per byte of a reduction, in each domain over ``near`` links, then over ``far`` ones."""
    count = far.chips
    shapes = near.shape, far.shape
    if compatibility.domain_ignores_factor_and_kind:
        shapes, factors = ("r", "r"), (1, 1)
    close = min(domain, count)
    time = factors[0] * _once_around(shapes[0], close) / near.gb_per_s if close > 1 else 0.0
    if domain < count:
        sent = 1 / count if shapes[1] == "fc" else (count / domain - 1) / count
        time += factors[1] * sent / far.gb_per_s
    return time


def _everywhere(design: Design, compatibility: Compatibility) -> float:
    """Return the time per byte of a reduction over all chips: each dimension has the share that the inner ones left."""
    if compatibility.periodic_bandwidth_forgotten:
        return compatibility.periodic_factor or 1
    time, share = 0.0, 1.0
    for link in design.machine.links:
        if link.chips > 1 or compatibility.lone_chip_communicates:
            factor = _periodic(design, link.shape, compatibility)
            time += share * factor * _once_around(link.shape, link.chips) / link.gb_per_s
        share /= link.chips
    return time
