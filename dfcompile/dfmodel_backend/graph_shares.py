"""The share of one chip of a dataflow graph whose kernels are split over a tensor parallel group [ko24, section 3]."""

from dataclasses import replace

from dfcompile.dfmodel_backend.collective_times import all_reduce_latency_ns, ns_per_byte
from dfcompile.dfmodel_backend.design import Collective, DesignEdge, DesignKernel, Dim, Link
from dfcompile.dfmodel_backend.graph import DataflowGraph, DataflowKernel, KernelType, Tensor, TensorKind
from dfcompile.dfmodel_backend.inter_chip import shard_kernels
from dfcompile.dfmodel_backend.layouts import Layout, conversion, given_layout, needed_layout
from dfcompile.dfmodel_backend.options import MappingOptions, Solver
from dfcompile.dfmodel_backend.system import System

Sharding = dict[str, Dim]


def shard_graph(graph: DataflowGraph, system: System) -> tuple[DataflowGraph, Sharding]:
    """Split every kernel over the chips of a system and return what one chip has, and the split dimensions.

    The sharding moves the fewest bytes. A kernel that is split along its contraction reduces its output over the
    chips, as reduce-scatter and all-gather; a tensor that is read in another layout is converted, whole. A tensor
    that some reader needs on every chip lies there whole.
    """
    if system.chips == 1:
        return graph, {kernel.name: Dim.NONE for kernel in graph.kernels}
    design_kernels = tuple(_design_kernel(graph, number) for number in range(len(graph.kernels)))
    ends = dict.fromkeys((graph.index[edge.source], graph.index[edge.target]) for edge in graph.connections)
    edges = tuple(DesignEdge(source, target, zero_out=False) for source, target in ends)
    found = shard_kernels(design_kernels, edges, MappingOptions(solver=Solver.CBC)).sharding
    network = system.network
    first = network.dimensions[0]
    group = Link(network.kind, system.chips, first.link_bandwidth_gb_per_s, "TP", first.link_power_w_per_gb_per_s)
    sharding = {kernel.name: found[number] for number, kernel in enumerate(graph.kernels)}
    share = _Share(graph, design_kernels, sharding, group, network.link_latency_ns)
    kernels = tuple(share.kernel(kernel) for kernel in graph.kernels)
    tensors = tuple(share.tensor(tensor) for tensor in graph.tensors)
    return DataflowGraph(graph.name, kernels, tensors, graph.assumptions), sharding


def _design_kernel(graph: DataflowGraph, number: int) -> DesignKernel:
    kernel = graph.kernels[number]
    made = [tensor.size_bytes for tensor in graph.tensors if tensor.source == kernel.name]
    reads: dict[int, float] = {}
    for tensor in graph.tensors:
        for use in tensor.uses:
            if use.kernel == kernel.name and tensor.kind is not TensorKind.WEIGHT:
                reads[use.operand] = float(tensor.size_bytes)
    return DesignKernel(
        name=kernel.name,
        id=number,
        pinned_config=-1,
        backward=False,
        systolic=kernel.type is KernelType.SYSTOLIC,
        variant=kernel.variant,
        outer=kernel.outer,
        m=kernel.m,
        k=kernel.k,
        n=kernel.n,
        input_1_bytes=reads.get(0, 0.0),
        input_2_bytes=reads.get(1, 0.0),
        output_bytes=float(sum(made)),
        tiling=Dim.NONE,
        collective=Collective.NONE,
        collective_bytes=0.0,
        collective_2=Collective.NONE,
        memory_bytes=0.0,
        skip_weight=False,
        use_effective_stage=False,
        num_input=0,
        sram_extra_bytes=0.0,
        dram_extra_bytes=0.0,
    )


class _Share:
    """Divides kernels and tensors and adds up what they exchange."""

    def __init__(
        self,
        graph: DataflowGraph,
        design_kernels: tuple[DesignKernel, ...],
        sharding: Sharding,
        group: Link,
        link_latency_ns: float,
    ) -> None:
        self._graph = graph
        self._design = {kernel.name: kernel for kernel in design_kernels}
        self._sharding = sharding
        self._group = group
        self._latency_ns = all_reduce_latency_ns(group, link_latency_ns, separate_phases=True)

    def kernel(self, kernel: DataflowKernel) -> DataflowKernel:
        split, chips = self._sharding[kernel.name], self._group.chips
        sizes = {Dim.OUTER: kernel.outer, Dim.M: kernel.m, Dim.K: kernel.k, Dim.N: kernel.n}
        if split in sizes:
            sizes[split] = -(-sizes[split] // chips)
        moved, time_ns = self._exchange(kernel.name, split)
        return replace(
            kernel,
            outer=sizes[Dim.OUTER],
            m=sizes[Dim.M],
            k=sizes[Dim.K],
            n=sizes[Dim.N],
            exchange_bytes=moved,
            exchange_ns=time_ns,
        )

    def tensor(self, tensor: Tensor) -> Tensor:
        whole = any(self._needed(tensor, use.kernel) is Layout.REPLICATED for use in tensor.uses)
        if tensor.kind is TensorKind.WEIGHT:
            whole = any(self._sharding[use.kernel] in (Dim.N, Dim.NONE) for use in tensor.uses)
        elif tensor.source:
            whole = whole or given_layout(self._sharding[tensor.source]) is Layout.REPLICATED
        return tensor if whole else replace(tensor, size_bytes=-(-tensor.size_bytes // self._group.chips))

    def _needed(self, tensor: Tensor, reader: str) -> Layout:
        return needed_layout(self._design[reader], self._sharding[reader], float(tensor.size_bytes))

    def _exchange(self, name: str, split: Dim) -> tuple[float, float]:
        """Return bytes and time of the all-reduce of a kernel and of the conversions of what it makes."""
        moved = time_ns = 0.0
        for tensor in self._graph.tensors:
            if tensor.source != name:
                continue
            needed = dict.fromkeys(self._needed(tensor, use.kernel) for use in tensor.uses)
            collectives = [conversion(given_layout(split), layout) for layout in needed]
            if split is Dim.K:
                collectives.append(Collective.ALL_REDUCE)
                time_ns += self._latency_ns
            for collective in collectives:
                if collective is not Collective.NONE:
                    moved += tensor.size_bytes
                    time_ns += tensor.size_bytes * ns_per_byte(collective, self._group, separate_phases=True)
        return moved, time_ns
