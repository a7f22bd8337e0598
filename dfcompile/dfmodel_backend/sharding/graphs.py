"""The share of one chip of a dataflow graph whose kernels are split over a tensor parallel group [ko24, section 3]."""

import math
from dataclasses import replace
from fractions import Fraction

from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.inter_chip.layouts import Layout, conversion, given_layout, needed_layout
from dfcompile.dfmodel_backend.inter_chip.tensor_group import TensorGroup
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.milp import MilpOptions
from dfcompile.dfmodel_backend.sharding.designs import shard_kernels
from dfcompile.dfmodel_backend.workload.design import DesignEdge, DesignKernel, Dim
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, DataflowKernel, KernelType, Tensor, TensorKind
from dfcompile.errors import InfeasibleError

Sharding = dict[str, Dim]
LETTERS = replace(RIGHT, layouts_by_letter=True)


def find_sharding(graph: DataflowGraph) -> Sharding:
    """Return the split dimension of every kernel such that the fewest bytes move, on however many chips."""
    edges = dict.fromkeys((graph.index[edge.source], graph.index[edge.target]) for edge in graph.connections)
    found = shard_kernels(
        _design_kernels(graph),
        tuple(DesignEdge(source, target, zero_out=False) for source, target in edges),
        MilpOptions(),
        compatibility=LETTERS,
    )
    return {kernel.name: found.sharding[number] for number, kernel in enumerate(graph.kernels)}


def require_whole_products(graph: DataflowGraph, chips: int) -> None:
    """Check that chips share whole products of kernels that have several, such as heads of attention.

    Raises:
        InfeasibleError: naming the kernel, and the nearest number of chips that divides its products.
    """
    for kernel in graph.kernels:
        if kernel.type is KernelType.SYSTOLIC and kernel.outer > 1 and kernel.outer % chips:
            fitting = max(count for count in range(1, chips + 1) if kernel.outer % count == 0)
            raise InfeasibleError(
                f"kernel {kernel.name!r}: found {chips} chips against a divisor of its {kernel.outer} products "
                f"({fitting} divides them)"
            )


def share_graph(graph: DataflowGraph, system: System, sharding: Sharding) -> DataflowGraph:
    """Return what one chip of a system has of a graph: the largest share where a dimension does not divide evenly.

    A kernel that is split along its contraction reduces its output over the chips, as reduce-scatter and all-gather;
    a tensor that is read in another layout is converted, whole. A tensor that some reader needs on every chip lies
    there whole.
    """
    share = _Share(graph, sharding, TensorGroup.of(system), system.chips)
    kernels = tuple(share.kernel(kernel) for kernel in graph.kernels)
    tensors = tuple(share.tensor(tensor) for tensor in graph.tensors)
    return DataflowGraph(graph.name, kernels, tensors, graph.assumptions)


def _design_kernels(graph: DataflowGraph) -> tuple[DesignKernel, ...]:
    return tuple(_design_kernel(graph, number) for number in range(len(graph.kernels)))


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

    def __init__(self, graph: DataflowGraph, sharding: Sharding, group: TensorGroup, chips: int) -> None:
        self._graph = graph
        self._design = {kernel.name: kernel for kernel in _design_kernels(graph)}
        self._sharding = sharding
        self._group = group
        self._chips = chips

    def kernel(self, kernel: DataflowKernel) -> DataflowKernel:
        split = self._sharding[kernel.name]
        sizes = _sizes(self._design[kernel.name])
        if split in sizes:
            sizes[split] = -(-sizes[split] // self._chips)
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
        readers = [use.kernel for use in tensor.uses]
        whole = any(self._needed(tensor, reader) is Layout.REPLICATED for reader in readers)
        if tensor.kind is TensorKind.WEIGHT:
            whole = any(self._sharding[reader] in (Dim.N, Dim.NONE) for reader in readers)
        elif tensor.source:
            whole = whole or given_layout(self._sharding[tensor.source]) is Layout.REPLICATED
        if whole:
            return tensor
        ends = [*readers, *([tensor.source] if tensor.source else [])]
        part = max((self._part(name) for name in ends), default=Fraction(1))
        return replace(tensor, size_bytes=math.ceil(tensor.size_bytes * part))

    def _part(self, name: str) -> Fraction:
        """Return the part of a kernel that the chip with most of it has."""
        extent = _sizes(self._design[name])[self._sharding[name]]
        return Fraction(-(-extent // self._chips), extent)

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
            for collective in collectives:
                if collective is not Collective.NONE:
                    moved += tensor.size_bytes
                    time_ns += self._group.time_ns(collective, tensor.size_bytes)
        return moved, time_ns


def _sizes(kernel: DesignKernel) -> dict[Dim, int]:
    return {Dim.OUTER: kernel.outer, Dim.M: kernel.m, Dim.K: kernel.k, Dim.N: kernel.n}
