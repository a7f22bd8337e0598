"""The operations of kernels, from their loops alone [ko24]."""

import math

from dfcompile.canonical_dag import CanonicalDag, Kernel, TensorRole


def kernel_flop(kernel: Kernel) -> int:
    """Return the operations of a kernel: two per term of each sum of a contraction, else one per element."""
    elements = math.prod((kernel.outer, kernel.m, kernel.n))
    return 2 * kernel.k * elements if kernel.variant.is_gemm else elements


def prepared_kernels(dag: CanonicalDag) -> set[str]:
    """Return the names of kernels that depend on parameters alone: they run when weights are loaded."""
    constant = {tensor.name for tensor in dag.tensors if tensor.role is TensorRole.PARAMETER}
    makers: dict[str, list[Kernel]] = {}
    for kernel in dag.kernels:
        for name in kernel.outputs:
            makers.setdefault(name, []).append(kernel)
    prepared: set[str] = set()
    open_kernels = list(dag.kernels)
    while True:
        found = [kernel for kernel in open_kernels if constant.issuperset(kernel.inputs)]
        if not found:
            return prepared
        prepared.update(kernel.name for kernel in found)
        open_kernels = [kernel for kernel in open_kernels if kernel.name not in prepared]
        for kernel in found:
            constant.update(name for name in kernel.outputs if all(one.name in prepared for one in makers[name]))


def model_flop(dag: CanonicalDag) -> int:
    """Return the operations of a model, each once, however many chips repeat them."""
    prepared = prepared_kernels(dag)
    return sum(kernel_flop(kernel) for kernel in dag.kernels if kernel.name not in prepared)
