"""Checks what the chips of a sharded graph exchange: no byte is faster than the narrowest cut of their network."""

from dfcompile.dfmodel_backend.check.collectives import least_ns_per_byte
from dfcompile.dfmodel_backend.machine.machine import Link
from dfcompile.dfmodel_backend.machine.network.topologies import topology
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph
from dfcompile.errors import VerificationError

RELATIVE = 1e-9


def check_exchanges(share: DataflowGraph, system: System) -> None:
    """Check the share of one chip of a system of several: what its kernels exchange takes as long as it must.

    Raises:
        VerificationError: naming the kernel, found against at least.
        PluginError: the same, if the network has a dimension of a plug-in's kind.
    """
    shape = topology(system.network.kind)
    links = tuple(
        Link(kind.name, dimension.chips, dimension.link_bandwidth_gb_per_s, "", 0.0)
        for kind, dimension in zip(shape.kinds, system.network.dimensions, strict=True)
    )
    with shape.faults():
        least = least_ns_per_byte(shape.name, links)
        for kernel in share.kernels:
            at_least_ns = kernel.exchange_bytes * least
            if kernel.exchange_ns < at_least_ns * (1 - RELATIVE):
                raise VerificationError(
                    f"kernel {kernel.name!r}: exchanges {kernel.exchange_bytes:g} bytes in {kernel.exchange_ns:g} ns "
                    f"against at least {at_least_ns:g} over the narrowest cut"
                )
