"""High-performance Linpack: block columns of an LU factorisation, one after the other [ko24]."""

from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.workload.design import Dim
from dfcompile.errors import UserError
from dfcompile.generators.workloads.arguments import check_kernels, check_positive
from dfcompile.generators.workloads.kernels import gemm
from dfcompile.generators.workloads.workload_graph import Communication, WorkloadGraph, WorkloadKernel, numbered
from dfcompile.records import replace

ANY_CONFIGURATION = 0  # kernels run one by one in order, whatever stands there


def hpl(*, n: int, b: int, word: int, iterations: int | None = None) -> WorkloadGraph:
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
    kernels = tuple(_iteration(step, n - step * b, b, word) for step in range(steps))
    return WorkloadGraph(kernels, numbered(tuple((step, step + 1) for step in range(1, steps))))


def _iteration(step: int, side: int, b: int, word: int) -> WorkloadKernel:
    column = side * b * word
    return replace(
        gemm(f"Iteration_{step + 1}", 1, side, side, b, word),
        input_bytes=column,
        second_input_bytes=0,
        tiling=Dim.NONE,
        direction=None,
        configuration=ANY_CONFIGURATION,
        communication=Communication(Collective.BROADCAST, column),
        second_communication=Communication(Collective.POINT_TO_POINT, column),
    )
