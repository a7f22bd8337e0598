"""Shardings that may be the best of a design: of fewest bytes between chips, and of least time in two sums."""

from collections import Counter

from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.design_options import ShardingObjective
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.milp import MilpOptions
from dfcompile.dfmodel_backend.sharding.designs import InterChip, SplitTimes, allowed_dims, shard
from dfcompile.dfmodel_backend.workload.design import Design, Dim
from dfcompile.records import replace


def candidate_shardings(
    design: Design, objective: ShardingObjective, compatibility: Compatibility, options: MilpOptions
) -> tuple[InterChip, ...]:
    """Return the shardings to try, that of fewest bytes first; one alone if that is what is asked for.

    How long a configuration takes depends on all of its kernels, which are chosen later: compute, memory and network
    overlap, and what stays inside is not moved. Sums over kernels are what a sharding can be found for: the sum of
    compute and exchange, as if all tensors stayed on the chip; and that sum with all tensors moved, which is the time
    itself where each kernel is a configuration of its own and nothing overlaps.

    Raises:
        InfeasibleError: the pinned shardings contradict what a kernel allows.
    """
    if not design.shards_kernels:
        return (InterChip({kernel.id: kernel.pinned_sharding or Dim.NONE for kernel in design.kernels}, 0.0),)
    pinned = {kernel.id: kernel.pinned_sharding for kernel in design.kernels if kernel.pinned_sharding is not None}
    found = [shard(design, options, pinned, None, compatibility)]
    if objective is ShardingObjective.TIME:
        # In micro-batches of one input, so that degrees and network alone tell shardings apart.
        batch = replace(design.execution.batch, micro_batch=1)
        model = DesignModel(replace(design, execution=replace(design.execution, batch=batch)), {}, 1, compatibility)
        found += [
            shard(design, options, pinned, split_times(model, memory=memory), compatibility) for memory in (False, True)
        ]
    return tuple({tuple(one.sharding.items()): one for one in reversed(found)}.values())[::-1]


def split_times(model: DesignModel, *, memory: bool) -> SplitTimes:
    """Return what each split of each kernel costs on the chips of a model; its own sharding plays no part.

    Args:
        model: of the design.
        memory: whether weights and all tensors, written by one kernel and read by others, are moved as well.
    """
    design, counted = model.design, model.design.execution.counted
    readers = Counter(edge.source for edge in design.edges if not edge.zero_out)
    kernels: dict[tuple[int, Dim], float] = {}
    edges: dict[tuple[int, Dim, Collective], float] = {}
    for dim in Dim:
        sharding = {kernel.id: dim for kernel in design.kernels if dim in allowed_dims(kernel)}
        split = DesignModel(design, sharding, model.tiles, model.compatibility)
        for position, share in enumerate(split.shares):
            if share.kernel.id not in sharding:
                continue
            reduced = sum(size for collective, size in share.exchange if collective is Collective.ALL_REDUCE)
            taken_ns = float(split.least_parts[position, 0])
            if "N" in counted:
                taken_ns += model.tiles * reduced * model.network.ratio_ns_per_byte(Collective.ALL_REDUCE)
                taken_ns += (reduced > 0) * model.network.latency_ns(Collective.ALL_REDUCE)
            if memory and "M" in counted:
                moved = (
                    float(split.held.moved[position]) + 2 * split.tiles * readers[share.kernel.id] * share.output_bytes
                )
                taken_ns += moved / design.machine.dram_gb_per_s
            kernels[share.kernel.id, dim] = taken_ns
            whole_bytes = share.output_bytes * split.chips_of_output(share)
            for change in (Collective.ALL_GATHER, Collective.ALL_TO_ALL):
                moved_ns = split.tiles * whole_bytes * model.network.ratio_ns_per_byte(change)
                edges[share.kernel.id, dim, change] = (moved_ns + model.network.latency_ns(change)) * ("N" in counted)
    return SplitTimes(kernels, edges)
