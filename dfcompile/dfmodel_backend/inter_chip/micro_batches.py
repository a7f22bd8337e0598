"""Micro-batches: how often a batch runs through the pipeline of each data parallel group."""

from fractions import Fraction
from typing import assert_never

from dfcompile.dfmodel_backend.inter_chip.degrees import Degrees
from dfcompile.dfmodel_backend.workload.design import Batch, Design, WorkloadKind
from dfcompile.errors import UserError


def micro_batches(design: Design, degrees: Degrees) -> Fraction:
    """Return the number of micro-batches; a free size counts as 1.

    Raises:
        UserError: the batch is no whole number of them.
    """
    batch = design.execution.batch
    match batch.kind:
        case WorkloadKind.HPL | WorkloadKind.FFT:
            return Fraction(1)
        case WorkloadKind.LLM | WorkloadKind.DLRM:
            return _parts_of(batch, degrees)
    assert_never(batch.kind)


def _parts_of(batch: Batch, degrees: Degrees) -> Fraction:
    size = max(1, batch.micro_batch)
    count = Fraction(batch.global_batch, size * degrees.data)
    if count.denominator != 1:
        raise UserError(
            f"field 'execution.{batch.kind}.global_batch_size': found {batch.global_batch} against a multiple of "
            f"micro_batch_size x DP = {size} x {degrees.data}"
        )
    return count


def micro_batch_sizes(design: Design, degrees: Degrees) -> tuple[int, ...]:
    """Return the sizes to choose from: the given one, or every divisor of what a data parallel group gets."""
    batch = design.execution.batch
    if batch.micro_batch or batch.kind is not WorkloadKind.LLM:
        return (batch.micro_batch,)
    if batch.global_batch % degrees.data:
        return ()
    share = batch.global_batch // degrees.data
    small = [size for size in range(1, int(share**0.5) + 1) if share % size == 0]
    return tuple(sorted({*small, *(share // size for size in small)}))
