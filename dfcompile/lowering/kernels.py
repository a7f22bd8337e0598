"""The kernel that a canonical operator is: what the DFModel back end will map."""

from collections import Counter
from collections.abc import Sequence

from dfcompile.canonical_dag import Kernel, KernelLoop, KernelVariant
from dfcompile.lowering.nests.nest import Nest
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operators import CanonicalOperator, Contraction
from dfcompile.lowering.operators.loop_nest import kernel_loops
from dfcompile.records import replace


def kernel_of(op: CanonicalNode[CanonicalOperator], expansion: str, nests: Sequence[Nest]) -> Kernel:
    """Return the kernel of a canonical operator.

    An operator without contraction is element-wise to the back end: it touches ``m * n`` elements, as many as its map
    scopes have iterations, where n is the last dimension of its result if that divides them.

    Of a table that depends on parameters alone, which is read at places that depend on data, the kernel has no operand:
    it stays in memory, and only the bytes are counted that are read.

    Args:
        op: the operator.
        expansion: name of the chosen expansion.
        nests: that it becomes.
    """
    iterations = sum(nest.iterations for nest in nests)
    tables: Counter[str] = Counter()  # bytes that are read
    for nest in nests:
        for table in nest.tables.values():
            tables[table.name] += nest.iterations * table.element_bytes
    in_memory = [tensor.name for tensor in op.operands() if tensor.name in tables and tensor.is_constant]
    operands = [tensor for tensor in op.operands() if tensor.name not in in_memory]
    activations = [tensor for tensor in operands if not tensor.is_constant]
    contraction = op.operator.contraction(op.operands(), op.output())
    if contraction is not None:
        weighted = len(activations) < len(operands)
        variant = KernelVariant.GEMM_INPUT1_WEIGHT if weighted else KernelVariant.GEMM_INPUT1_INPUT2
    else:
        n = op.output().shape[-1] if op.output().shape else 1
        n = n if iterations % n == 0 else 1
        contraction = Contraction(1, iterations // n, 1, n)
        paired = len(activations) > 1
        variant = KernelVariant.ELEMENTWISE_INPUT1_INPUT2 if paired else KernelVariant.ELEMENTWISE_INPUT1
    named, extents = (op.name, op.op_type, op.origin, expansion), (contraction.outer, contraction.m, contraction.k)
    ends = tuple(tensor.name for tensor in operands), tuple(tensor.name for tensor in op.results())
    memory_bytes = sum(tables[name] for name in in_memory)
    return Kernel(*named, variant, *extents, contraction.n, *ends, memory_bytes, _loops(op, in_memory))


def _loops(op: CanonicalNode[CanonicalOperator], in_memory: list[str]) -> tuple[KernelLoop, ...]:
    """Return the loops that may be split, with a digit per operand that is none in memory."""
    operands = op.operands()
    nest = op.operator.loop_nest(operands, op.output())
    if nest is None or len(op.results()) > 1:
        return ()
    loops = kernel_loops(nest, [tensor.shape for tensor in operands], op.output().shape)
    kept = [place for place, tensor in enumerate(operands) if tensor.name not in in_memory]
    return tuple(replace(loop, inputs=tuple(loop.inputs[place] for place in kept)) for loop in loops)
