"""High-performance Linpack: block columns of an LU factorisation, one after the other [ko24]."""

from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError
from dfcompile.generators.workloads.kernels import (
    ANY_CONFIGURATION,
    check_kernels,
    check_positive,
    exchanging,
    gemm,
    graph_of,
)


def hpl(*, n: int, b: int, word: int, iterations: int | None = None) -> schema.Dataflow_Graph:
    """Return a chain of kernels; the ``i``-th updates the trailing matrix of side ``n - i b`` by a block column.

    The block column is broadcast along one dimension of the grid of chips and sent on along the other.

    Args:
        n: side of the matrix.
        b: side of a block.
        word: bytes per element.
        iterations: block columns in the graph; all ``ceil(n / b)`` if absent.

    Raises:
        UserError: an argument is not positive, a block larger than the matrix, or more iterations than block columns.
    """
    check_positive("hpl", n=n, b=b, word=word)
    if b > n:
        raise UserError(f"hpl: found b {b} against at most n {n}")
    columns = -(-n // b)
    steps = columns if iterations is None else iterations
    check_positive("hpl", iterations=steps)
    if steps > columns:
        raise UserError(f"hpl: found iterations {steps} against {columns} block columns of b {b} in n {n}")
    check_kernels("hpl", steps)
    kernels = [_iteration(step, n - step * b, b, word) for step in range(steps)]
    return graph_of(kernels, [(step, step + 1) for step in range(1, steps)])


def _iteration(step: int, side: int, b: int, word: int) -> schema.Kernel:
    column = side * b * word
    kernel = exchanging(gemm(f"Iteration_{step + 1}", 1, side, side, b, word), schema.BROADCAST, column)
    kernel.config, kernel.fwd_bwd = ANY_CONFIGURATION, schema.FWD_BWD_UNSET
    product = kernel.gemm_input1_input2
    product.input_tensor_1_size, product.input_tensor_2_size, product.tiling = column, 0, schema.NO_TILING
    product.communication_type_2, product.communication_size_2 = schema.POINT_TO_POINT, column
    return kernel
