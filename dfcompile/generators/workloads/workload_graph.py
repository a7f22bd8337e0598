"""The graph that a generator gives: kernels and connections as a design file has them, before anything is solved."""

from enum import StrEnum, unique
from typing import assert_never

from msgspec import Struct

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.workload.design import Dim

FREE = -1  # the configuration of a kernel is to be found


@unique
class KernelType(StrEnum):
    """Which units of a core a kernel runs on, as design files name them."""

    SYSTOLIC = "SYSTOLIC"  # a contraction: lanes and stages of a core work together
    SIMD = "SIMD"  # elementwise: the lanes of a core


@unique
class Direction(StrEnum):
    """Which half of a training step a kernel belongs to; an inference has only the first."""

    FORWARD = "FWD"
    BACKWARD = "BWD"


class Communication(Struct, frozen=True):
    """What a kernel exchanges with other chips."""

    collective: Collective
    size_bytes: float


class WorkloadKernel(Struct, frozen=True):
    """One kernel: ``outer`` products ``[m, k] x [k, n] -> [m, n]``, or ``outer * m * n`` elements (``k`` is 1).

    Sizes are in bytes: of whole tensors, except for what is said to be a chip's share. They are integers unless a
    share is a fraction.
    """

    name: str
    type: KernelType
    variant: KernelVariant
    outer: int
    m: int
    k: int
    n: int
    input_bytes: int
    output_bytes: int
    second_input_bytes: int = 0
    weight_bytes: int = 0
    tiling: Dim = Dim.N  # along which it may be cut into tiles
    direction: Direction | None = Direction.FORWARD
    configuration: int = FREE
    communication: Communication | None = None
    second_communication: Communication | None = None
    memory_bytes: float = 0  # a chip's share of what each execution reads from DRAM besides tensors
    resident_bytes: float = 0  # a chip's share of what stays in SRAM and DRAM besides tensors
    is_weight_skipped: bool = False  # weights take no SRAM
    inputs: int = 0  # how many inputs go through the kernel, one after the other; 0 as 1

    @property
    def flop(self) -> int:
        """FLOP over all inputs."""
        elements = max(1, self.inputs) * self.outer * self.m * self.n
        match self.type:
            case KernelType.SYSTOLIC:
                return 2 * elements * self.k
            case KernelType.SIMD:
                return elements
        assert_never(self.type)


class WorkloadConnection(Struct, frozen=True):
    """An edge between two kernels, which are counted from 1."""

    source: int
    target: int
    id: int
    is_empty: bool = False  # orders the kernels, but needs no buffer


class WorkloadGraph(Struct, frozen=True):
    """Kernels, numbered from 1 by position, and their connections."""

    kernels: tuple[WorkloadKernel, ...]
    connections: tuple[WorkloadConnection, ...]

    @property
    def flop(self) -> int:
        """FLOP of all kernels."""
        return sum(kernel.flop for kernel in self.kernels)


def numbered(edges: tuple[tuple[int, int], ...], first_id: int = 1) -> tuple[WorkloadConnection, ...]:
    """Return connections along edges ``(source, target)`` with ascending ids."""
    return tuple(WorkloadConnection(source, target, first_id + place) for place, (source, target) in enumerate(edges))
