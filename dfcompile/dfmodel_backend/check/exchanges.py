"""Checks what the chips of a sharded graph exchange: no byte is faster than the narrowest cut of their network."""

import math

from dfcompile.dfmodel_backend.check.collectives import least_ns_per_byte
from dfcompile.dfmodel_backend.machine.machine import Link
from dfcompile.dfmodel_backend.machine.network.topologies import topology
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.workload.exchange import Exchange, ExchangeKind
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph
from dfcompile.errors import VerificationError

RELATIVE = 1e-9


def check_exchanges(share: DataflowGraph, system: System) -> None:
    """Check the exchanges of a graph on several chips.

    Each takes as long as it must, moves no more than all chips could need, and is charged to the kernel that makes its
    tensor.

    Args:
        share: of the graph, what one chip has.
        system: with the chips in use.

    Raises:
        VerificationError: naming the kernel, found against expected.
        PluginError: the same, if the network has a dimension of a plug-in's kind.
    """
    shape = topology(system.network.kind)
    links = system.machine.links
    sources = {tensor.name: tensor.source for tensor in share.tensors}
    kernels = {kernel.name for kernel in share.kernels}
    with shape.faults():
        for exchange in share.exchanges:
            if sources.get(exchange.tensor) != exchange.source or exchange.source not in kernels:
                raise VerificationError(f"exchange of {exchange.tensor!r}: found source {exchange.source!r}")
            _check(exchange, [links[dimension] for dimension in exchange.dimensions], system)


def _check(exchange: Exchange, links: list[Link], system: System) -> None:
    least = least_ns_per_byte("_".join(link.shape for link in links), links)
    group = math.prod(link.chips for link in links)
    rounds = 2 if exchange.kind is ExchangeKind.ALL_REDUCE else 1
    hops = rounds * sum(link.chips > 1 for link in links)  # a link of each dimension, at least
    at_least_ns = exchange.message_bytes * least + hops * system.network.link_latency_ns
    where = f"kernel {exchange.source!r}: {exchange.kind} of {exchange.tensor!r}"
    if exchange.time_ns < at_least_ns * (1 - RELATIVE):
        raise VerificationError(
            f"{where}: exchanges {exchange.message_bytes} bytes in {exchange.time_ns:g} ns "
            f"against at least {at_least_ns:g} over the narrowest cut"
        )
    most = exchange.message_bytes * rounds * (group - 1) * (system.chips // group)
    if not 0 < exchange.moved_bytes <= most:
        raise VerificationError(f"{where}: moves {exchange.moved_bytes} bytes against at most {most}")
