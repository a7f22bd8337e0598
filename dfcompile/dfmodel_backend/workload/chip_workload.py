"""What one chip executes: the constants of each kernel and tensor after sharding and tiling, as numbers.

The fusion into configurations, its evaluator and its solvers see nothing else of the graph. On one chip nothing is
sharded and a configuration runs through its tensors once; more chips only mean another way to make a `Workload`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import assert_never

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, DataflowKernel, KernelType, TensorKind

NO_SOURCE = -1


@dataclass(frozen=True, slots=True)
class KernelWork:
    """The share of one kernel on one chip."""

    name: str
    systolic: bool
    rows: int  # outer * m
    k: int
    n: int
    network_ns: float = 0.0  # exchange with other chips
    stages_per_core: int = 0  # of this kernel; 0: those of the chip

    @property
    def shape(self) -> tuple[bool, int, int, int, int]:
        """What cores see of it: kernels of one shape are the same, whatever they are called."""
        return self.systolic, self.rows, self.k, self.n, self.stages_per_core

    @property
    def flop(self) -> int:
        """FLOP of one execution."""
        return (2 * self.k if self.systolic else 1) * self.rows * self.n


@dataclass(frozen=True, slots=True)
class Reading:
    """A kernel that reads a tensor."""

    kernel: int
    buffer_depth: int  # tiles in flight if the tensor stays on the chip
    cuts: int  # into how many tiles the kernel can take it, at most


@dataclass(frozen=True, slots=True)
class Flow:
    """A tensor that streams between kernels, or between kernels and DRAM."""

    name: str
    source: int  # kernel number, or NO_SOURCE
    readings: tuple[Reading, ...]
    size_bytes: int
    cuts: int  # into how many tiles the source can give it, at most
    leaves: bool  # an output of the model, written to DRAM in any case


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor that is loaded and then held while a configuration runs."""

    name: str
    kernels: tuple[int, ...]
    size_bytes: int


@dataclass(frozen=True)
class Workload:
    """Kernels are numbered in topological order; sets of kernels are bit masks over these numbers."""

    kernels: tuple[KernelWork, ...]
    flows: tuple[Flow, ...]
    weights: tuple[Weight, ...]

    @cached_property
    def predecessors(self) -> tuple[int, ...]:
        """Set of the direct predecessors of each kernel."""
        masks = [0] * len(self.kernels)
        for flow in self.flows:
            if flow.source != NO_SOURCE:
                for reading in flow.readings:
                    masks[reading.kernel] |= 1 << flow.source
        return tuple(masks)

    @property
    def every_kernel(self) -> int:
        """Set of all kernels."""
        return (1 << len(self.kernels)) - 1


def one_chip_workload(graph: DataflowGraph) -> Workload:
    """Return the workload of a chip that runs a graph: a whole one, or its share of one (`share_graph`)."""
    index = graph.index
    level = graph.topological_numbers
    flows = []
    weights = []
    for tensor in graph.tensors:
        users = tuple(index[use.kernel] for use in tensor.uses)
        if tensor.kind is TensorKind.WEIGHT:
            weights.append(Weight(tensor.name, users, tensor.size_bytes))
            continue
        source = index[tensor.source] if tensor.source else NO_SOURCE
        readings = tuple(
            Reading(
                kernel=user,
                buffer_depth=level[user] - level[source] + 1 if tensor.source else 2,
                cuts=_input_cuts(graph.kernels[user], use.operand),
            )
            for user, use in zip(users, tensor.uses, strict=True)
        )
        cuts = _output_cuts(graph.kernels[source]) if tensor.source else max(1, tensor.size_bytes)
        leaves = tensor.kind is TensorKind.OUTPUT
        flows.append(Flow(tensor.name, source, readings, tensor.size_bytes, cuts, leaves))
    return Workload(tuple(_work(kernel) for kernel in graph.kernels), tuple(flows), tuple(weights))


def _work(kernel: DataflowKernel) -> KernelWork:
    """Rows go to lanes: all elements of an elementwise kernel are rows, whatever its axes are called."""
    name, rows, network_ns = kernel.name, kernel.outer * kernel.m, kernel.exchange_ns
    match kernel.type:
        case KernelType.SIMD:
            return KernelWork(name, systolic=False, rows=rows * kernel.n, k=1, n=1, network_ns=network_ns)
        case KernelType.SYSTOLIC:
            return KernelWork(name, systolic=True, rows=rows, k=kernel.k, n=kernel.n, network_ns=network_ns)
    assert_never(kernel.type)


def _output_cuts(kernel: DataflowKernel) -> int:
    """A contraction finishes column by column, an elementwise kernel element by element."""
    columns = kernel.outer * kernel.n
    match kernel.type:
        case KernelType.SYSTOLIC:
            return columns
        case KernelType.SIMD:
            return columns * kernel.m
    assert_never(kernel.type)


def _input_cuts(kernel: DataflowKernel, operand: int) -> int:
    """A contraction takes one operand column by column (and along k), the other one is held per product."""
    columns = kernel.outer * kernel.n
    match kernel.type:
        case KernelType.SIMD:
            return columns * kernel.m
        case KernelType.SYSTOLIC:
            is_held = kernel.variant is KernelVariant.GEMM_INPUT1_INPUT2 and operand == 0
            return kernel.outer if is_held else columns * kernel.k
    assert_never(kernel.type)
