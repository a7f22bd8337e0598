"""What a layer hands to the next one: the graph of a design is one layer, and its end is the begin of the next."""

from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.workload.design import Design, DesignEdge, DesignKernel


def layer_edges(design: Design) -> tuple[DesignEdge, ...]:
    """Return connections from the last kernels of a layer to the first ones of the next layer of the same pass.

    They are told by their extents; gradients stay where they are. They cost what a change of layout on them costs:
    what they hold is the input and the output of the graph, which is moved whatever the layouts.
    """
    batch = design.execution.batch
    if not design.shards_kernels or batch.layers <= 1 or batch.layers_in_graph > 1:
        return ()
    read = {edge.source for edge in design.edges}
    made = {edge.target for edge in design.edges}
    last = [k for k in design.kernels if k.id not in read and k.collective is not Collective.ALL_REDUCE_PERIODIC]
    first = [k for k in design.kernels if k.id not in made and not k.variant.is_gemm]
    return tuple(
        DesignEdge(giver.id, taker.id, zero_out=False)
        for giver in last
        for taker in first
        if giver.id != taker.id and _hands_over(giver, taker)
    )


def _hands_over(giver: DesignKernel, taker: DesignKernel) -> bool:
    extents = [(kernel.outer * kernel.m, kernel.n) for kernel in (giver, taker)]
    return giver.backward is taker.backward and extents[0] == extents[1]
