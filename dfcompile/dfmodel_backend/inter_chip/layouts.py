"""Tensor layouts over chips, and what it takes to change one into another [ko24, section 3]."""

from collections.abc import Mapping, Sequence
from enum import StrEnum, unique
from typing import TypeAlias, assert_never

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.workload.design import DesignEdge, DesignKernel, Dim


@unique
class Layout(StrEnum):
    """How a tensor lies on a group of chips."""

    REPLICATED = "RR"
    COLUMNS = "RS"  # split along N
    ROWS = "SR"  # split along M or outer


Needs: TypeAlias = Mapping["Dim", Layout]  # of a tensor, by the split of the kernel that reads it

_GIVES = {
    Dim.OUTER: Layout.ROWS,
    Dim.M: Layout.ROWS,
    Dim.K: Layout.REPLICATED,  # after its all-reduce
    Dim.N: Layout.COLUMNS,
    Dim.NONE: Layout.REPLICATED,
}
_FIRST_OPERAND = {
    Dim.OUTER: Layout.ROWS,
    Dim.M: Layout.REPLICATED,
    Dim.K: Layout.ROWS,
    Dim.N: Layout.COLUMNS,
    Dim.NONE: Layout.REPLICATED,
}
_SECOND_OPERAND = {
    Dim.OUTER: Layout.ROWS,
    Dim.M: Layout.ROWS,
    Dim.K: Layout.COLUMNS,
    Dim.N: Layout.REPLICATED,
    Dim.NONE: Layout.REPLICATED,
}
_WEIGHT_UPDATE = {
    Dim.OUTER: Layout.ROWS,
    Dim.M: Layout.ROWS,
    Dim.K: Layout.COLUMNS,
    Dim.N: Layout.ROWS,
    Dim.NONE: Layout.REPLICATED,
}


def given_layout(sharding: Dim) -> Layout:
    """Return the layout in which a kernel leaves its output."""
    return _GIVES[sharding]


def needed_layout(consumer: DesignKernel, sharding: Dim, tensor_bytes: float) -> Layout:
    """Return the layout in which a kernel takes a tensor; its operand is told by the tensor's size."""
    if not consumer.variant.is_gemm:
        return _GIVES[sharding]
    if consumer.tiling is Dim.K:
        return _WEIGHT_UPDATE[sharding]
    second = (
        consumer.variant is KernelVariant.GEMM_INPUT1_INPUT2
        and tensor_bytes != consumer.input_1_bytes
        and tensor_bytes == consumer.input_2_bytes
    )
    return _SECOND_OPERAND[sharding] if second else _FIRST_OPERAND[sharding]


def needs_by_letter(kernels: Sequence[DesignKernel], edges: Sequence[DesignEdge]) -> tuple[Needs, ...]:
    """Return, per edge, in which layout its reader takes the tensor for each split of the reader, by [ko24]'s table."""
    by_id = {kernel.id: kernel for kernel in kernels}
    ends = [(by_id[edge.source], by_id[edge.target]) for edge in edges]
    return tuple({dim: needed_layout(taker, dim, giver.output_bytes) for dim in Dim} for giver, taker in ends)


def conversion(given: Layout, needed: Layout) -> Collective:
    """Return the collective that changes a layout; it moves each byte of the tensor once."""
    if given in (needed, Layout.REPLICATED):
        return Collective.NONE
    match needed:
        case Layout.REPLICATED:
            return Collective.ALL_GATHER
        case Layout.ROWS | Layout.COLUMNS:
            return Collective.ALL_TO_ALL
    assert_never(needed)
