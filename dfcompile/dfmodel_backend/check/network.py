"""Recomputes how long chips exchange, from tables of collectives [ko24]; shares no formula with the evaluator.

The evaluator has rules for dimensions and builds networks of them; here each of the twelve networks is written down.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import assert_never

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.check.collectives import (
    between_domains,
    exchange_in_group,
    exchange_ns_per_byte,
    hops,
    once_around,
)
from dfcompile.dfmodel_backend.check.operands import changes_by_axes, statistics_of
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.machine.machine import Collective, Link
from dfcompile.dfmodel_backend.workload.design import Design, DesignKernel, Dim, WorkloadKind
from dfcompile.records import replace

Extents = Callable[[DesignKernel], tuple[int, int, int]]  # rows, k, columns of one tile on one chip
Conversions = Sequence[tuple[int, Collective]]  # id of the kernel that makes a tensor, and what changes its layout

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


def network_time_ns(
    design: Design,
    sharding: Mapping[int, Dim],
    inside: Sequence[DesignKernel],
    extents: Extents,
    tiles: int,
    compatibility: Compatibility,
    conversions: Conversions,
) -> float:
    """Return how long the chips exchange in a configuration, or at least exchange: see `check.collectives.is_known`.

    Args:
        design: with all its degrees.
        sharding: split dimension by kernel id.
        inside: kernels of the configuration.
        extents: of a kernel on one chip.
        tiles: that the configuration runs.
        compatibility: flaws to repeat.
        conversions: see `conversions_of`.
    """
    kind = design.execution.batch.kind
    if kind is WorkloadKind.LLM:
        return _language_model_ns(design, sharding, inside, extents, tiles, compatibility, conversions)
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
    match kind:
        case WorkloadKind.FFT:
            exchanged /= everyone**2
        case WorkloadKind.DLRM:
            exchanged /= 1 if compatibility.all_to_all_as_given else everyone
        case _:
            assert_never(kind)
    total = exchanged * exchange_ns_per_byte(design.machine.topology, links, compatibility)
    gradients = _given(inside, Collective.ALL_REDUCE_PERIODIC)
    if kind is WorkloadKind.DLRM:
        gradients /= design.execution.batch.global_batch / everyone
    return total + gradients * _everywhere(design, compatibility)


def _given(inside: Sequence[DesignKernel], collective: Collective) -> float:
    return sum((kernel.collective_bytes for kernel in inside if kernel.collective is collective), 0.0)


def _language_model_ns(
    design: Design,
    sharding: Mapping[int, Dim],
    inside: Sequence[DesignKernel],
    extents: Extents,
    tiles: int,
    compatibility: Compatibility,
    conversions: Conversions,
) -> float:
    groups = {link.parallelism: link for link in design.machine.links if link.chips > 1}
    tensor, data, sequence = groups.get("TP"), groups.get("DP"), groups.get("SP")
    by_share = compatibility.layouts_change_by_share
    parts = tensor.chips if tensor is not None and not by_share else 1
    sent = sent_by(design, sharding, inside, extents, compatibility, conversions)
    split = {kernel.id for kernel in inside if sharding.get(kernel.id) in (Dim.OUTER, Dim.M, Dim.N)}
    factor = _factor(design, compatibility.all_reduce_factor)
    within = between = along = 0.0
    if tensor is not None:
        around = once_around(tensor, tensor.chips) / tensor.gb_per_s
        within = tiles * (
            _total(sent, Collective.ALL_REDUCE) * _tensor_reduction(design, tensor, factor, compatibility)
            + _whole(sent, Collective.ALL_GATHER, split, parts) * around
            + _whole(sent, Collective.ALL_TO_ALL, split, parts) * exchange_in_group(tensor, by_share=by_share)
        )
        if len(design.machine.links) != 3 or not 0 < design.machine.domain_chips < tensor.chips:
            kinds = [kind for _, kind, _ in sent]
            passes = factor * kinds.count(Collective.ALL_REDUCE)
            if not compatibility.gathers_without_latency:
                passes += kinds.count(Collective.ALL_GATHER) + kinds.count(Collective.ALL_TO_ALL)
            within += passes * design.machine.link_latency_ns * hops(tensor)
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
        around = once_around(sequence, sequence.chips) / sequence.gb_per_s
        for kernel in inside:
            rows, _, columns = extents(kernel)
            rounds = _rounds(kernel.collective_2, factor)
            along += tiles * around * rounds * rows * columns * design.execution.word_bytes
    return max(within, between, along)


Sent = tuple[DesignKernel, Collective, float]  # whose output, how, bytes of a tile


def sent_by(
    design: Design,
    sharding: Mapping[int, Dim],
    inside: Sequence[DesignKernel],
    extents: Extents,
    compatibility: Compatibility,
    conversions: Conversions,
) -> list[Sent]:
    """Return what kernels of a language model exchange, and what changes its layout behind them."""
    is_split = any(link.parallelism == "TP" and link.chips > 1 for link in design.machine.links)
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
        if is_split and design.shards_kernels and not compatibility.layouts_by_letter:
            count = statistics_of(kernel, sharding.get(kernel.id, Dim.NONE), rows, columns)
            if count:
                found.append((kernel, Collective.ALL_REDUCE, float(count * design.execution.word_bytes)))
    return found


def _total(sent: Sequence[Sent], collective: Collective) -> float:
    return sum((size for _, kind, size in sent if kind is collective), 0.0)


def _whole(sent: Sequence[Sent], collective: Collective, split: set[int], parts: int) -> float:
    """Return the bytes of whole tensors, of which those of split kernels lie in parts."""
    return sum((size * (parts if kernel.id in split else 1) for kernel, kind, size in sent if kind is collective), 0.0)


def _tiles_of_output(kernel: DesignKernel, tiles: int) -> int:
    return tiles if kernel.tiling in (Dim.OUTER, Dim.M, Dim.N) and not kernel.num_input else 1


def conversions_of(design: Design, sharding: Mapping[int, Dim], compatibility: Compatibility) -> Conversions:
    """Return, per edge that changes a layout, the id of its giver and what changes it."""
    if not design.shards_kernels:
        return []
    if not compatibility.layouts_by_letter:
        return list(changes_by_axes(design, sharding))
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


def _rounds(collective: Collective, factor: int) -> int:
    """Return how often a collective of a sequence parallel group goes around."""
    match collective:
        case Collective.ALL_REDUCE:
            return factor
        case Collective.ALL_GATHER:
            return 1
        case (
            Collective.NONE
            | Collective.ALL_TO_ALL
            | Collective.ALL_REDUCE_PERIODIC
            | Collective.POINT_TO_POINT
            | Collective.BROADCAST
        ):
            return 0
    assert_never(collective)


def _tensor_reduction(design: Design, tensor: Link, factor: int, compatibility: Compatibility) -> float:
    links, domain = design.machine.links, design.machine.domain_chips
    if domain and len(links) == 3:
        far = Link(links[1].shape, tensor.chips, links[1].gb_per_s, "", 0.0)
        return _in_domains(links[0], far, domain, (factor, factor), compatibility)
    return factor * once_around(tensor, tensor.chips) / tensor.gb_per_s


def _data_reduction(design: Design, data: Link, compatibility: Compatibility) -> float:
    links, domain = design.machine.links, design.machine.domain_chips
    if domain and len(links) == 3:
        factors = (_periodic(design, links[0].shape, compatibility), _periodic(design, data.shape, compatibility))
        return _in_domains(links[0], data, domain, factors, compatibility)
    return _periodic(design, data.shape, compatibility) * once_around(data, data.chips) / data.gb_per_s


def _periodic(design: Design, shape: str, compatibility: Compatibility) -> int:
    if shape == "fc" and compatibility.periodic_factor_ignored_when_fully_connected:
        return 1
    return _factor(design, compatibility.periodic_factor)


def _in_domains(near: Link, far: Link, domain: int, factors: tuple[int, int], compatibility: Compatibility) -> float:
    """Return the time per byte of a reduction, in each domain over ``near`` links, then over ``far`` ones."""
    count = far.chips
    if compatibility.domain_ignores_factor_and_kind:
        near, far, factors = replace(near, shape="r"), replace(far, shape="r"), (1, 1)
    close = min(domain, count)
    time = factors[0] * once_around(near, close) / near.gb_per_s if close > 1 else 0.0
    if domain < count:
        time += factors[1] * between_domains(far, count, domain) / far.gb_per_s
    return time


def _everywhere(design: Design, compatibility: Compatibility) -> float:
    """Return the time per byte of a reduction over all chips: each dimension has the share that the inner ones left."""
    if compatibility.periodic_bandwidth_forgotten:
        return compatibility.periodic_factor or 1
    time, share = 0.0, 1.0
    for link in design.machine.links:
        if link.chips > 1 or compatibility.lone_chip_communicates:
            factor = _periodic(design, link.shape, compatibility)
            time += share * factor * once_around(link, link.chips) / link.gb_per_s
        share /= link.chips
    return time
