"""Kernels and tensors: what a canonical DAG remembers of the canonical library nodes it came from."""

from enum import StrEnum, unique
from typing import assert_never

from msgspec import Struct

OWN = 0  # copy of an array that is the array itself


class KernelShare(Struct, frozen=True):
    """What a chip runs of a kernel.

    Attributes:
        kernel: name.
        loops: iterations of each loop that is split, by name; of other loops the chip runs all.
        reads: per operand of the kernel which copy of the array it reads: `OWN` as its maker leaves it, or the number
            of one that chips make by an exchange.
    """

    kernel: str
    loops: tuple[tuple[str, int], ...]
    reads: tuple[int, ...]


class ProgramShare(Struct, frozen=True):
    """What the chip with most of it runs of a model; it has the first iterations of each loop that is split.

    Attributes:
        kernels: all of them.
    """

    kernels: tuple[KernelShare, ...]


@unique
class KernelVariant(StrEnum):
    """Operand structure of a kernel, in the words of DFModel's ``kernel_variant`` [ko24]."""

    GEMM_INPUT1_WEIGHT = "gemm_input1_weight"
    GEMM_INPUT1_INPUT2 = "gemm_input1_input2"
    ELEMENTWISE_INPUT1 = "elementwise_input1"
    ELEMENTWISE_INPUT1_INPUT2 = "elementwise_input1_input2"

    @property
    def is_gemm(self) -> bool:
        """Whether the kernel contracts a dimension, hence runs on the systolic units."""
        match self:
            case KernelVariant.GEMM_INPUT1_WEIGHT | KernelVariant.GEMM_INPUT1_INPUT2:
                return True
            case KernelVariant.ELEMENTWISE_INPUT1 | KernelVariant.ELEMENTWISE_INPUT1_INPUT2:
                return False
        assert_never(self)


@unique
class TensorRole(StrEnum):
    """Where a tensor lives in the model."""

    INPUT = "input"
    PARAMETER = "parameter"  # a constant of the model: weight, bias
    INTERMEDIATE = "intermediate"
    OUTPUT = "output"


class KernelTensor(Struct, frozen=True):
    """An array that kernels exchange."""

    name: str
    elements: int
    element_bytes: int
    role: TensorRole

    @property
    def size_bytes(self) -> int:
        """Size of the whole tensor in bytes."""
        return self.elements * self.element_bytes


@unique
class LoopKind(StrEnum):
    """What becomes of a loop's iterations: a part of the result each, or partial results that are combined."""

    PARALLEL = "parallel"
    SUM = "sum"
    PRODUCT = "product"
    MAX = "max"
    MIN = "min"


@unique
class LoopPart(StrEnum):
    """The dimension of a kernel that a loop is all of, or a part of."""

    OUTER = "outer"
    M = "m"
    K = "k"
    N = "n"


class Digit(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a loop moves in an array: iteration i touches only elements with ``offset // stride % extent == i``.

    Offsets are those of the array in row order, so that views and reshapes of it have the same digits.
    """

    stride: int
    axis: int  # of the array as the kernel sees it, for people


class KernelLoop(Struct, frozen=True, forbid_unknown_fields=True):
    """A loop of a kernel that may be split: over its parts of the result, or over partial results.

    An array of which the loop has no digit is needed whole in each iteration.
    """

    name: str
    part: LoopPart
    extent: int
    kind: LoopKind
    inputs: tuple[Digit | None, ...]  # one per operand
    outputs: tuple[Digit | None, ...]  # one per result: all of a parallel loop, none of a reduction


class Kernel(Struct, frozen=True, forbid_unknown_fields=True):
    """One canonical library node: the unit that the DFModel back end maps.

    ``outer`` is a batch-like dimension. A gemm computes ``outer`` products ``[m, k] x [k, n] -> [m, n]``,
    ``2 * outer * m * k * n`` FLOP; an elementwise kernel touches ``outer * m * n`` elements (``k`` is 1).
    """

    name: str
    op: str  # type of the canonical library node, such as MatMul
    origin: str  # the user's operator
    expansion: str  # the chosen expansion, such as mv
    variant: KernelVariant
    outer: int
    m: int
    k: int
    n: int
    inputs: tuple[str, ...]  # tensor names, in operand order
    outputs: tuple[str, ...]
    memory_bytes: int = 0  # read from memory at places that depend on data, such as rows of an embedding; in no tensor
    loops: tuple[KernelLoop, ...] = ()  # that may be split; none are known of an operator that does not say

    @property
    def flop(self) -> int:
        """``2 * outer * m * k * n`` of a gemm, ``outer * m * n`` of an elementwise kernel."""
        return (2 * self.k if self.variant.is_gemm else 1) * self.outer * self.m * self.n
