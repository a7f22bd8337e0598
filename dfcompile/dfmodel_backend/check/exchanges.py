"""Checks what the chips of a sharded graph exchange: no byte is faster than the narrowest cut of their network."""

import math

from dfcompile.dfmodel_backend.check.collectives import least_ns_per_byte
from dfcompile.dfmodel_backend.inter_chip.conversions import ExchangeKind
from dfcompile.dfmodel_backend.inter_chip.exchange import Exchange
from dfcompile.dfmodel_backend.machine.machine import Link
from dfcompile.dfmodel_backend.machine.network.topologies import topology
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph
from dfcompile.errors import VerificationError

RELATIVE = 1e-9


def check_exchanges(share: DataflowGraph, exchanges: tuple[Exchange, ...], system: System) -> None:
    """Check the exchanges of a graph on several chips.

    Each takes as long as it must, moves no more than all chips could need, and is charged to the kernel that makes its
    tensor.

    Args:
        share: of the graph, what one chip has.
        exchanges: of all chips.
        system: with the chips in use.

    Raises:
        VerificationError: naming the kernel, found against expected.
        PluginError: the same, if the network has a dimension of a plug-in's kind.
    """
    shape = topology(system.network.kind)
    links = system.machine.links
    sources = {tensor.name: tensor.source for tensor in share.tensors}
    charged_ns = {kernel.name: 0.0 for kernel in share.kernels}
    charged_bytes = dict.fromkeys(charged_ns, 0.0)
    with shape.faults():
        for exchange in exchanges:
            if sources.get(exchange.tensor) != exchange.source or exchange.source not in charged_ns:
                raise VerificationError(f"exchange of {exchange.tensor!r}: found source {exchange.source!r}")
            charged_ns[exchange.source] += exchange.time_ns
            charged_bytes[exchange.source] += exchange.message_bytes
            _check(exchange, [links[dimension] for dimension in exchange.dimensions], system)
    for kernel in share.kernels:
        for what, found, expected in (
            ("bytes", kernel.exchange_bytes, charged_bytes[kernel.name]),
            ("ns", kernel.exchange_ns, charged_ns[kernel.name]),
        ):
            if not math.isclose(found, expected, rel_tol=RELATIVE):
                raise VerificationError(f"kernel {kernel.name!r}: exchanges {found:g} {what} against {expected:g}")


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
