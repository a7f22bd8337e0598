"""Builds the kernels and graphs of generated workloads as in design files [ko24]; checks the sizes asked for."""

from collections.abc import Sequence

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.design_file.message import text_of, variant_of
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError

FREE = -1  # the solver chooses the configuration of the kernel
ANY_CONFIGURATION = 0  # of workloads whose kernels run one by one in order, whatever this number is
LARGEST_SIZE = (2 - 2**-23) * 2.0**127  # design files hold sizes as 32-bit floating-point numbers


def elementwise(name: str, outer: int, m: int, n: int, word: int) -> schema.Kernel:
    """``x[outer, m, n] -> y[outer, m, n]``."""
    size = outer * m * n * word
    return kernel_of(name, KernelVariant.ELEMENTWISE_INPUT1, (outer, m, n), size, input_tensor_size=size)


def elementwise_of_two(name: str, outer: int, m: int, n: int, word: int) -> schema.Kernel:
    """``x[outer, m, n], y[outer, m, n] -> z[outer, m, n]``."""
    size = outer * m * n * word
    inputs = {"input_tensor_1_size": size, "input_tensor_2_size": size}
    return kernel_of(name, KernelVariant.ELEMENTWISE_INPUT1_INPUT2, (outer, m, n), size, **inputs)


def weighted_gemm(name: str, outer: int, m: int, k: int, n: int, word: int) -> schema.Kernel:
    """``weight[outer, m, k] x input[k, n] -> output[outer, m, n]``: all outer products read the same input."""
    sizes = {"input_tensor_size": k * n * word, "weight_tensor_size": outer * m * k * word}
    return kernel_of(name, KernelVariant.GEMM_INPUT1_WEIGHT, (outer, m, n), outer * m * n * word, K=k, **sizes)


def gemm(name: str, outer: int, m: int, k: int, n: int, word: int, *, is_swapped: bool = False) -> schema.Kernel:
    """``a[outer, m, k] x b[outer, k, n] -> c[outer, m, n]``; input 1 is ``a``, or ``b`` where they are swapped."""
    sizes = (outer * m * k * word, outer * k * n * word)
    first, second = reversed(sizes) if is_swapped else sizes
    inputs = {"input_tensor_1_size": first, "input_tensor_2_size": second}
    return kernel_of(name, KernelVariant.GEMM_INPUT1_INPUT2, (outer, m, n), outer * m * n * word, K=k, **inputs)


def kernel_of(
    name: str, variant: KernelVariant, extents: tuple[int, int, int], output_bytes: int, **fields: int
) -> schema.Kernel:
    """Return a kernel of the forward pass, to be cut into tiles along n.

    Args:
        name: of the kernel.
        variant: which operands it has.
        extents: outer, m and n.
        output_bytes: size of its result.
        fields: sizes of operands in bytes, and K, by their names in design files.

    Raises:
        UserError: a size cannot be written to a file.
    """
    require_sizes(name, output_bytes, *fields.values())
    kind = schema.SYSTOLIC if variant.is_gemm else schema.SIMD
    kernel = schema.Kernel(name=name, config=FREE, type=kind, fwd_bwd=schema.FWD)
    message = getattr(kernel, variant.value)
    message.outer, message.M, message.N = extents
    message.output_tensor_size, message.tiling = output_bytes, schema.N_TILING
    for field, value in fields.items():
        setattr(message, field, value)
    return kernel


def require_sizes(name: str, *sizes: int) -> None:
    """Check that sizes of a kernel in bytes can be written to a design file.

    Raises:
        UserError: one exceeds the 32-bit floating-point numbers.
    """
    if max(sizes) > LARGEST_SIZE:
        raise UserError(f"kernel {name!r}: found {max(sizes)} bytes against at most {LARGEST_SIZE:.4g} in a file")


def set_exchange(kernel: schema.Kernel, collective: schema.CommunicationType, size_bytes: float) -> schema.Kernel:
    """Set, in place, how many bytes a kernel exchanges with other chips, and return the kernel."""
    variant = variant_of(kernel)
    variant.communication_type, variant.communication_size = collective, size_bytes
    return kernel


def graph_of(
    kernels: Sequence[schema.Kernel], edges: Sequence[tuple[int, int]], first_id: int = 1
) -> schema.Dataflow_Graph:
    """Return a graph of kernels, which get the ids 1, 2, …, and of edges, which get ids from ``first_id`` on."""
    for number, kernel in enumerate(kernels, start=1):
        kernel.id = number
    numbered = enumerate(edges, start=first_id)
    connections = [schema.Connection(startIdx=start, endIdx=end, id=number) for number, (start, end) in numbered]
    return schema.Dataflow_Graph(kernels=kernels, connections=connections)


def design_text(graph: schema.Dataflow_Graph) -> str:
    """Return a design file that has the graph and nothing else: ``dataflow_graph { kernels { … } … }``."""
    return text_of(schema.DSE(dataflow_graph=graph))


LARGEST_EXTENT = 2**62  # design files hold dimensions as 64-bit integers
LARGEST_GRAPH = 10**6  # kernels


def check_positive(workload: str, **arguments: int) -> None:
    """Check that every argument is at least 1 and can be written to a design file.

    Raises:
        UserError: one is not; the message names it.
    """
    for name, value in arguments.items():
        if value < 1:
            raise UserError(f"{workload}: found {name} {value} against at least 1")
        if value > LARGEST_EXTENT:
            raise UserError(f"{workload}: found {name} {value} against at most {LARGEST_EXTENT}")


def check_kernels(workload: str, kernels: int) -> None:
    """Check that a graph is not too large to be built.

    Raises:
        UserError: it is.
    """
    if kernels > LARGEST_GRAPH:
        raise UserError(f"{workload}: found a graph of {kernels} kernels against at most {LARGEST_GRAPH}")


def share(total: int, parts: int) -> float:
    """Return one of equal parts: an integer if the total is divisible."""
    return total // parts if total % parts == 0 else total / parts
