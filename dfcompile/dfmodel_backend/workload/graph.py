"""The dataflow graph: kernels and the tensors that they exchange [ko24, section 3]."""

from enum import StrEnum, unique
from functools import cached_property

from msgspec import Struct

from dfcompile.canonical_dag import Kernel
from dfcompile.dfmodel_backend.assumption import Assumption
from dfcompile.dfmodel_backend.workload.exchange import Exchange
from dfcompile.dfmodel_backend.workload.topological_order import topological_numbers, topological_order
from dfcompile.errors import UserError, nearest


@unique
class TensorKind(StrEnum):
    """How a tensor of the graph is used."""

    INTERMEDIATE = "intermediate"  # made by a kernel, read by kernels
    INPUT = "input"  # of the model: read from DRAM by each configuration that uses it
    OUTPUT = "output"  # of the model: written to DRAM, whoever else reads it
    WEIGHT = "weight"  # of the model: loaded from DRAM and held in SRAM while a configuration runs


class Use(Struct, frozen=True):
    """A kernel that reads a tensor."""

    kernel: str
    operand: int  # position among the operands that are no weights: 0 is the first


class Tensor(Struct, frozen=True):
    """What one kernel (or the outside world) gives to all kernels that read it."""

    name: str
    kind: TensorKind
    size_bytes: int
    source: str  # the kernel that makes it; empty for inputs and weights of the model
    uses: tuple[Use, ...]
    element_bytes: int = 1
    is_looked_up: bool = False  # at places that depend on data: every iteration of its reader reads as much of it

    @property
    def elements(self) -> int:
        """Number of elements; a part of one counts."""
        return -(-self.size_bytes // self.element_bytes)


class DataflowGraph(Struct, frozen=True, dict=True):
    """Kernels in topological order and tensors; see `DataflowGraph.of` for a checked one.

    Attributes:
        name: of the model.
        kernels: in topological order; a gemm is ``weight[m, k] x input[k, n]``, and operands and results are names of
            tensors.
        tensors: in a fixed order; every name is unique.
        assumptions: decisions made when the graph was built.
        exchanges: of all chips, where this is what one of several has of a graph; in the order of the tensors.
    """

    name: str
    kernels: tuple[Kernel, ...]
    tensors: tuple[Tensor, ...]
    assumptions: tuple[Assumption, ...] = ()
    exchanges: tuple[Exchange, ...] = ()

    @staticmethod
    def of(
        name: str, kernels: tuple[Kernel, ...], tensors: tuple[Tensor, ...], assumptions: tuple[Assumption, ...] = ()
    ) -> "DataflowGraph":
        """Check the parts, put the kernels into topological order (ties: as given) and freeze.

        Raises:
            UserError: an unknown kernel, a name used twice, a dimension or size below 1, or a cycle.
        """
        _check_parts(kernels, tensors)
        ordered = topological_order(len(kernels), _ends({kernel.name: n for n, kernel in enumerate(kernels)}, tensors))
        if len(ordered) < len(kernels):
            stuck = kernels[min(set(range(len(kernels))) - set(ordered))]
            raise UserError(f"kernel {stuck.name!r}: part of, or behind, a cycle of kernels (expected a DAG)")
        return DataflowGraph(name, tuple(kernels[number] for number in ordered), tensors, assumptions)

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each kernel."""
        return {kernel.name: position for position, kernel in enumerate(self.kernels)}

    @property
    def ends(self) -> list[tuple[int, int]]:
        """Numbers of the kernels that make and read each tensor between kernels."""
        return _ends(self.index, self.tensors)

    @cached_property
    def topological_numbers(self) -> tuple[int, ...]:
        """Length of the longest path from a source kernel, per kernel."""
        return tuple(topological_numbers(len(self.kernels), self.ends))

    @property
    def flop(self) -> int:
        """FLOP of all kernels."""
        return sum(kernel.flop for kernel in self.kernels)


def _check_parts(kernels: tuple[Kernel, ...], tensors: tuple[Tensor, ...]) -> None:
    known: set[str] = set()
    for kernel in kernels:
        if kernel.name in known:
            raise UserError(f"kernel {kernel.name!r}: found twice against one of each name")
        known.add(kernel.name)
        for field, extent in (("outer", kernel.outer), ("m", kernel.m), ("k", kernel.k), ("n", kernel.n)):
            if extent < 1:
                raise UserError(f"kernel {kernel.name!r}: found {field} {extent} against at least 1")
    names: set[str] = set()
    for tensor in tensors:
        if tensor.name in names:
            raise UserError(f"tensor {tensor.name!r}: found twice against one of each name")
        names.add(tensor.name)
        if tensor.size_bytes < 0:
            raise UserError(f"tensor {tensor.name!r}: found {tensor.size_bytes} bytes against at least 0")
        ends = (*([tensor.source] if tensor.source else []), *(use.kernel for use in tensor.uses))
        for end in ends:
            if end not in known:
                raise UserError(f"tensor {tensor.name!r}: no kernel {end!r}{nearest(end, sorted(known))}")


def _ends(index: dict[str, int], tensors: tuple[Tensor, ...]) -> list[tuple[int, int]]:
    return [(index[tensor.source], index[use.kernel]) for tensor in tensors if tensor.source for use in tensor.uses]
