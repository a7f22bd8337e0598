"""The bytes that a sharding moves between chips, from the sharding alone [ko24, section 3]."""

from collections.abc import Mapping

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.inter_chip.layouts import (
    conversion,
    exchanged_statistics,
    given_layout,
    layer_edges,
    needs_of,
)
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.workload.design import Design, Dim

REDUCING = (Collective.NONE, Collective.ALL_REDUCE)


def sharding_bytes(design: Design, sharding: Mapping[int, Dim], compatibility: Compatibility = RIGHT) -> float:
    """Return the bytes that kernels all-reduce and edges convert, per input and layer, before chips share them.

    Args:
        design: with its degrees; one whose kernels are not shared by chips moves nothing.
        sharding: split dimension by kernel id.
        compatibility: whose layouts hold.
    """
    if not design.shards_kernels:
        return 0.0
    kernels = {kernel.id: kernel for kernel in design.kernels}
    reduced = sum(
        kernel.output_bytes
        for kernel in design.kernels
        if sharding[kernel.id] is Dim.K and kernel.collective in REDUCING
    )
    converted = 0.0
    edges = design.edges if compatibility.layouts_by_letter else (*design.edges, *layer_edges(design))
    for edge, needed in zip(edges, needs_of(design.kernels, edges, compatibility), strict=True):
        giver, taker = kernels[edge.source], kernels[edge.target]
        if conversion(given_layout(sharding[giver.id]), needed[sharding[taker.id]]) is not Collective.NONE:
            converted += giver.output_bytes
    if compatibility.layouts_by_letter:
        return reduced + converted
    statistics = sum(
        exchanged_statistics(kernel, sharding[kernel.id], kernel.outer * kernel.m, kernel.n)
        for kernel in design.kernels
    )
    return reduced + converted + statistics * design.execution.word_bytes
