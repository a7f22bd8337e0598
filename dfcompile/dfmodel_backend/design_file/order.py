"""Whether directions and given configurations of kernels go along with the connections between them."""

from collections.abc import Iterator

from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError


def check_order(message: schema.DSE, where: str) -> None:
    """Check that the forward pass waits for nothing of the backward pass, and that configurations ascend.

    The graph has no cycle.

    Raises:
        UserError: naming the kernel and the field.
    """
    kernels = {kernel.id: kernel for kernel in message.dataflow_graph.kernels}
    least = {number: kernel.config for number, kernel in kernels.items()}
    slots, pinned = message.execution.num_config, _has_pins(message)
    trains = any(kernel.fwd_bwd == schema.BWD for kernel in kernels.values())
    for giver, taker in _edges_in_order(message):
        kernel = kernels[taker]
        if kernels[giver].fwd_bwd == schema.BWD and kernel.fwd_bwd != schema.BWD:
            raise UserError(
                f"{where}: connection {giver} to {taker}: leads from the backward pass to kernel {kernel.name!r}, "
                "whose field 'fwd_bwd' is not BWD"
            )
        if pinned and 0 <= kernel.config < least[giver]:
            raise UserError(
                f"{where}: kernel {kernel.name!r}: field 'config': found {kernel.config} against at least "
                f"{least[giver]}, that of a kernel before it"
            )
        least[taker] = max(least[taker], least[giver])
    for kernel in kernels.values() if pinned and trains else ():
        if kernel.fwd_bwd != schema.BWD and kernel.config > (slots - 1) // 2:
            found = f"at most {(slots - 1) // 2} of the forward pass"
        elif kernel.fwd_bwd == schema.BWD and 0 <= kernel.config < slots // 2:
            found = f"at least {slots // 2} of the backward pass"
        else:
            continue
        raise UserError(f"{where}: kernel {kernel.name!r}: field 'config': found {kernel.config} against {found}")


def _has_pins(message: schema.DSE) -> bool:
    """Return whether given configurations count: not if positions in the file are the order [ko24]."""
    execution = message.execution
    one_by_one = execution.execution_style == schema.KERNEL_BY_KERNEL
    return not one_by_one and execution.num_config not in (0, len(message.dataflow_graph.kernels))


def _edges_in_order(message: schema.DSE) -> Iterator[tuple[int, int]]:
    """Yield the edges such that all that enter a kernel come before those that leave it."""
    readers: dict[int, list[int]] = {kernel.id: [] for kernel in message.dataflow_graph.kernels}
    waits = dict.fromkeys(readers, 0)
    for connection in message.dataflow_graph.connections:
        readers[connection.startIdx].append(connection.endIdx)
        waits[connection.endIdx] += 1
    ready = [number for number, count in waits.items() if not count]
    while ready:
        giver = ready.pop()
        for taker in readers[giver]:
            yield giver, taker
            waits[taker] -= 1
            if not waits[taker]:
                ready.append(taker)
