"""The kernel that a canonical operator is: what the DFModel back end will map."""

from math import prod

from dfcompile.canonical_dag import Kernel, KernelVariant
from dfcompile.lowering.operator import Operator


def kernel_of(op: Operator, expansion: str) -> Kernel:
    """Return the kernel of a canonical operator.

    An operator with the attribute ``gemm = (outer, m, k, n)`` contracts a dimension; any other one touches every
    element of the largest of its tensors once: that one is ``[m, n]`` with n its last dimension.
    """
    operands = op.operands()
    activations = [tensor for tensor in operands if not tensor.is_constant]
    if "gemm" in op.attributes:
        outer, m, k, n = op.integers("gemm")
        weighted = len(activations) < len(operands)
        variant = KernelVariant.GEMM_INPUT1_WEIGHT if weighted else KernelVariant.GEMM_INPUT1_INPUT2
    else:
        largest = max((*operands, op.output()), key=lambda tensor: tensor.elements)
        outer, k, n = 1, 1, largest.shape[-1] if largest.shape else 1
        m = prod(largest.shape[:-1])
        paired = len(activations) > 1
        variant = KernelVariant.ELEMENTWISE_INPUT1_INPUT2 if paired else KernelVariant.ELEMENTWISE_INPUT1
    return Kernel(
        name=op.name,
        op=op.op_type,
        origin=op.origin,
        expansion=expansion,
        variant=variant,
        outer=outer,
        m=m,
        k=k,
        n=n,
        inputs=tuple(tensor.name for tensor in operands),
        outputs=tuple(tensor.name for tensor in op.outputs if tensor is not None),
    )
