"""The bytes that a sharding moves between chips, from the sharding alone [ko24, section 3]."""

from collections.abc import Mapping

from dfcompile.dfmodel_backend.inter_chip.layouts import conversion, given_layout, needed_layout
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.workload.design import Design, Dim

REDUCING = (Collective.NONE, Collective.ALL_REDUCE)


def sharding_bytes(design: Design, sharding: Mapping[int, Dim]) -> float:
    """Return the bytes that kernels all-reduce and edges convert, per input and layer, before chips share them.

    Args:
        design: with its degrees; one whose kernels are not shared by chips moves nothing.
        sharding: split dimension by kernel id.
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
    for edge in design.edges:
        giver, taker = kernels[edge.source], kernels[edge.target]
        needed = needed_layout(taker, sharding[taker.id], giver.output_bytes)
        if conversion(given_layout(sharding[giver.id]), needed) is not Collective.NONE:
            converted += giver.output_bytes
    return reduced + converted
