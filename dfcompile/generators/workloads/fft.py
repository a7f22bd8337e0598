"""Fast Fourier transform in two steps with an exchange between them [ko24]."""

import math

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError
from dfcompile.generators.workloads.kernels import ANY_CONFIGURATION, check_positive, exchanging, graph_of, kernel_of

LARGEST_RADIX = 4096


def fft(*, length: int, word: int, radix: int = 2) -> schema.Dataflow_Graph:
    """Return two kernels: transforms of all columns, then of all rows, of a square of ``side = floor(sqrt(length))``.

    Args:
        length: of the transform.
        word: bytes per element.
        radix: of a butterfly.

    Raises:
        UserError: an argument is not positive, or a radix that does not fit the side.
    """
    check_positive("fft", length=length, word=word, radix=radix)
    if length < 4:
        raise UserError(f"fft: found length {length} against at least 4")
    side = math.isqrt(length)
    if not 2 <= radix <= min(side, LARGEST_RADIX):
        most = min(side, LARGEST_RADIX)
        raise UserError(f"fft: found radix {radix} against 2 to {most} (length {length} has sides of {side})")
    products = butterfly_products(side, radix)
    first, second = (_step(name, side, products, word) for name in ("Step_1", "Step_2"))
    return graph_of([first, exchanging(second, schema.ALL_TO_ALL, side * side * word)], [(1, 2)])


def butterfly_products(side: int, radix: int) -> int:
    """Return ``floor(4 radix log(side) / log(radix))``: real products per element of a transform, exactly.

    >>> butterfly_products(2**20, 32), butterfly_products(1036214, 2)
    (512, 159)
    """
    products = 4 * radix * math.log2(side) / math.log2(radix)
    near = round(products)
    if abs(products - near) > 1e-6:
        return math.floor(products)
    return near if radix**near <= side ** (4 * radix) else near - 1


def _step(name: str, side: int, products: int, word: int) -> schema.Kernel:
    """The factors of the butterflies are no weight: they are computed."""
    size, variant = side * side * word, KernelVariant.GEMM_INPUT1_WEIGHT
    kernel = kernel_of(name, variant, (1, side, side), size, K=products, input_tensor_size=size)
    kernel.config, kernel.fwd_bwd = ANY_CONFIGURATION, schema.FWD_BWD_UNSET
    kernel.gemm_input1_weight.tiling = schema.NO_TILING
    return kernel
