"""Kernels of generated workloads, with tensor sizes that follow from their dimensions."""

from dfcompile.canonical_dag import KernelVariant
from dfcompile.generators.workloads.workload_graph import KernelType, WorkloadKernel


def elementwise(name: str, outer: int, m: int, n: int, word: int) -> WorkloadKernel:
    """``x[outer, m, n] -> y[outer, m, n]``."""
    size = outer * m * n * word
    return WorkloadKernel(
        name, KernelType.SIMD, KernelVariant.ELEMENTWISE_INPUT1, outer, m, 1, n, input_bytes=size, output_bytes=size
    )


def elementwise_of_two(name: str, outer: int, m: int, n: int, word: int) -> WorkloadKernel:
    """``x[outer, m, n], y[outer, m, n] -> z[outer, m, n]``."""
    size = outer * m * n * word
    return WorkloadKernel(
        name,
        KernelType.SIMD,
        KernelVariant.ELEMENTWISE_INPUT1_INPUT2,
        outer,
        m,
        1,
        n,
        input_bytes=size,
        second_input_bytes=size,
        output_bytes=size,
    )


def weighted_gemm(name: str, outer: int, m: int, k: int, n: int, word: int) -> WorkloadKernel:
    """``weight[outer, m, k] x input[k, n] -> output[outer, m, n]``: all outer products read the same input."""
    return WorkloadKernel(
        name,
        KernelType.SYSTOLIC,
        KernelVariant.GEMM_INPUT1_WEIGHT,
        outer,
        m,
        k,
        n,
        input_bytes=k * n * word,
        weight_bytes=outer * m * k * word,
        output_bytes=outer * m * n * word,
    )


def gemm(name: str, outer: int, m: int, k: int, n: int, word: int, *, is_swapped: bool = False) -> WorkloadKernel:
    """``a[outer, m, k] x b[outer, k, n] -> c[outer, m, n]``; input 1 is ``a``, or ``b`` where they are swapped."""
    first, second = outer * m * k * word, outer * k * n * word
    if is_swapped:
        first, second = second, first
    return WorkloadKernel(
        name,
        KernelType.SYSTOLIC,
        KernelVariant.GEMM_INPUT1_INPUT2,
        outer,
        m,
        k,
        n,
        input_bytes=first,
        second_input_bytes=second,
        output_bytes=outer * m * n * word,
    )
