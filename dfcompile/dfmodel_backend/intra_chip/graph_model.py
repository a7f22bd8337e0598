"""The kernels of a dataflow graph on a chip, or a chip's share of them: each configuration has tiles of its own."""

from collections.abc import Callable
from copy import copy
from functools import cached_property

import numpy as np

from dfcompile.canonical_dag import Kernel, KernelVariant
from dfcompile.dfmodel_backend.intra_chip.flow_columns import NOBODY, FlowColumns, HeldColumns, Users
from dfcompile.dfmodel_backend.intra_chip.set_model import Rules, SetModel
from dfcompile.dfmodel_backend.kernel_sets import FusionShape, predecessors_of
from dfcompile.dfmodel_backend.machine.system import Machine
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, TensorKind
from dfcompile.dfmodel_backend.workload.kernel_work import KernelWork

FINEST = 1 << 62  # a tile count above every tensor's own limit


class GraphModel(SetModel):
    """Constants of every kernel and tensor of a graph, and the figures of any set of kernels in the finest tiles."""

    def __init__(self, graph: DataflowGraph, machine: Machine, options: MappingOptions) -> None:
        self._flows_in_tiles = _tiled_flows(graph)
        weights = [tensor for tensor in graph.tensors if tensor.kind is TensorKind.WEIGHT]
        self._weight_bytes = float(sum(weight.size_bytes for weight in weights))
        used = [weight for weight in weights if weight.uses]
        size = np.array([weight.size_bytes for weight in used], float)
        users = Users.of([[graph.index[use.kernel] for use in weight.uses] for weight in used])
        network_ns = {kernel.name: 0.0 for kernel in graph.kernels}  # each is charged for exchanges of what it makes
        for exchange in graph.exchanges:
            network_ns[exchange.source] += exchange.time_ns
        super().__init__(
            machine,
            tuple(KernelWork.of(kernel, network_ns[kernel.name]) for kernel in graph.kernels),
            self._flows_in_tiles(FINEST),
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
        model.flows = self._flows_in_tiles(tiles)
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


def _tiled_flows(graph: DataflowGraph) -> Callable[[int], FlowColumns]:
    """Return what gives the tensors of a graph that stream in so many tiles, or as many as both ends can cut."""
    kernels, index, level = graph.kernels, graph.index, graph.topological_numbers
    tensors = [tensor for tensor in graph.tensors if tensor.kind is not TensorKind.WEIGHT]
    makers = [index[tensor.source] if tensor.source else NOBODY for tensor in tensors]
    given = np.array([_cuts_of_output(kernels[maker]) if maker != NOBODY else FINEST for maker in makers], np.int64)
    uses = [(maker, use) for tensor, maker in zip(tensors, makers, strict=True) for use in tensor.uses or (None,)]
    cuts = [_cuts_of_input(kernels[index[use.kernel]], use.operand) if use else 1 for _, use in uses]
    levels = [level[index[use.kernel]] - level[maker] + 1 if use and maker != NOBODY else 0 for maker, use in uses]
    sizes = [tensor.size_bytes for tensor in tensors]
    size, depth, taken = (np.array(column, np.int64) for column in (sizes, levels, cuts))
    counts = [max(1, len(tensor.uses)) for tensor in tensors]
    source = np.array(makers, np.intp)
    readers = Users.of([[index[use.kernel] for use in tensor.uses] for tensor in tensors])
    is_read = np.array([bool(tensor.uses) for tensor in tensors], bool)

    def in_tiles(tiles: int) -> FlowColumns:
        gives, takes, whole = np.minimum(tiles, given), np.minimum(tiles, taken), np.repeat(size, counts)
        return FlowColumns(
            source=source,
            readers=readers,
            is_read=is_read,
            leaves=np.array([tensor.kind is TensorKind.OUTPUT for tensor in tensors], bool),
            size=size.astype(float),
            border=np.asarray(2 * -(-whole // takes), float),
            inside=np.asarray(depth * -(-whole // np.minimum(takes, np.repeat(gives, counts))), float),
            written=np.asarray(-(-size // gives), float),
        )

    return in_tiles
