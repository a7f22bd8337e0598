"""The kernels of a dataflow graph on a chip, or a chip's share of them: each configuration has tiles of its own."""

from copy import copy
from functools import cached_property

import numpy as np

from dfcompile.canonical_dag import Kernel, KernelVariant
from dfcompile.dfmodel_backend.intra_chip.flow_columns import NOBODY, FlowColumns, HeldColumns, Users
from dfcompile.dfmodel_backend.intra_chip.set_model import Rules, SetModel
from dfcompile.dfmodel_backend.kernel_sets.shape import FusionShape, predecessors_of
from dfcompile.dfmodel_backend.machine.machine import Machine
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, TensorKind
from dfcompile.dfmodel_backend.workload.kernel_work import KernelWork

FINEST = 1 << 62  # a tile count above every tensor's own limit


class GraphModel(SetModel):
    """Constants of every kernel and tensor of a graph, and the figures of any set of kernels in the finest tiles."""

    def __init__(self, graph: DataflowGraph, machine: Machine, options: MappingOptions) -> None:
        self._flows = _GraphFlows(graph)
        weights = [tensor for tensor in graph.tensors if tensor.kind is TensorKind.WEIGHT]
        self._weight_bytes = float(sum(weight.size_bytes for weight in weights))
        used = [weight for weight in weights if weight.uses]
        size = np.array([weight.size_bytes for weight in used], float)
        users = Users.of([[graph.index[use.kernel] for use in weight.uses] for weight in used])
        super().__init__(
            machine,
            _works(graph),
            self._flows.in_tiles(FINEST),
            HeldColumns(users, size, size),
            Rules(options.overlap, utilization=options.compute_utilization),
        )
        self.options, self._ends = options, graph.ends

    @property
    def always_bytes(self) -> float:
        """Weights."""
        return self._weight_bytes

    def in_tiles(self, tiles: int) -> "GraphModel":
        """Return the model with tensors in so many tiles, or as many as they can have."""
        model = copy(self)
        model.flows = self._flows.in_tiles(tiles)
        model.__dict__.pop("_alone", None)
        return model

    @cached_property
    def shape(self) -> FusionShape:
        """Precedence; every configuration may hold every kernel."""
        count = len(self.works)
        return FusionShape(
            predecessors=predecessors_of(count, self._ends),
            allowed=((1 << count) - 1,) * (self.options.max_configurations or count),
            most_kernels=self.machine.cores,
        )


def _works(graph: DataflowGraph) -> tuple[KernelWork, ...]:
    """Return what cores see of the kernels; each is charged for the exchanges of what it makes."""
    network_ns = {kernel.name: 0.0 for kernel in graph.kernels}
    for exchange in graph.exchanges:
        network_ns[exchange.source] += exchange.time_ns
    return tuple(KernelWork.of(kernel, network_ns[kernel.name]) for kernel in graph.kernels)


def _cuts_of_output(kernel: Kernel) -> int:
    """Return into how many tiles a kernel can give its output: column by column, or element by element."""
    columns = kernel.outer * kernel.n
    return columns if kernel.variant.is_gemm else columns * kernel.m


def _cuts_of_input(kernel: Kernel, operand: int) -> int:
    """Return into how many tiles a kernel can take an operand.

    A contraction takes one operand column by column (and along k), the other one is held per product.
    """
    columns = kernel.outer * kernel.n
    if not kernel.variant.is_gemm:
        return columns * kernel.m
    is_held = kernel.variant is KernelVariant.GEMM_INPUT1_INPUT2 and operand == 0
    return kernel.outer if is_held else columns * kernel.k


class _GraphFlows:
    """Tensors of a graph that stream, and into how many tiles each end of them can cut them."""

    def __init__(self, graph: DataflowGraph) -> None:
        kernels, index, level = graph.kernels, graph.index, graph.topological_numbers
        tensors = [tensor for tensor in graph.tensors if tensor.kind is not TensorKind.WEIGHT]
        source = [index[tensor.source] if tensor.source else NOBODY for tensor in tensors]
        gives = [_cuts_of_output(kernels[maker]) if maker != NOBODY else FINEST for maker in source]
        uses = [(maker, use) for tensor, maker in zip(tensors, source, strict=True) for use in tensor.uses or (None,)]
        takes = [_cuts_of_input(kernels[index[use.kernel]], use.operand) if use else 1 for _, use in uses]
        depth = [level[index[use.kernel]] - level[maker] + 1 if use and maker != NOBODY else 0 for maker, use in uses]
        self._counts = [max(1, len(tensor.uses)) for tensor in tensors]
        self._size = np.array([tensor.size_bytes for tensor in tensors], np.int64)
        self._gives, self._takes = np.array(gives, np.int64), np.array(takes, np.int64)
        self._depth = np.array(depth, np.int64)
        self._source = np.array(source, np.intp)
        self._readers = Users.of([[index[use.kernel] for use in tensor.uses] for tensor in tensors])
        self._is_read = np.array([bool(tensor.uses) for tensor in tensors], bool)
        self._leaves = np.array([tensor.kind is TensorKind.OUTPUT for tensor in tensors], bool)

    def in_tiles(self, tiles: int) -> FlowColumns:
        """Return what the tensors take in so many tiles, or as many as both ends can have."""
        gives, takes = np.minimum(tiles, self._gives), np.minimum(tiles, self._takes)
        whole = np.repeat(self._size, self._counts)
        inside = self._depth * -(-whole // np.minimum(takes, np.repeat(gives, self._counts)))
        return FlowColumns(
            source=self._source,
            readers=self._readers,
            is_read=self._is_read,
            leaves=self._leaves,
            size=self._size.astype(float),
            border=np.asarray(2 * -(-whole // takes), float),
            inside=np.asarray(inside, float),
            written=np.asarray(-(-self._size // gives), float),
        )
