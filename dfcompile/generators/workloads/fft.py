"""Fast Fourier transform in two steps with an exchange between them [ko24]."""

import math

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.workload.design import Dim
from dfcompile.errors import UserError
from dfcompile.generators.workloads.arguments import check_positive
from dfcompile.generators.workloads.workload_graph import (
    Communication,
    KernelType,
    WorkloadGraph,
    WorkloadKernel,
    numbered,
)
from dfcompile.records import replace

ANY_CONFIGURATION = 0  # kernels run one by one in order, whatever stands there
LARGEST_RADIX = 4096


def fft(*, length: int, word: int, radix: int = 2) -> WorkloadGraph:
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
        raise UserError(
            f"fft: found radix {radix} against 2 to {min(side, LARGEST_RADIX)} (length {length} has sides of {side})"
        )
    first = _step("Step_1", side, butterfly_products(side, radix), word)
    exchange = Communication(Collective.ALL_TO_ALL, first.output_bytes)
    return WorkloadGraph((first, replace(first, name="Step_2", communication=exchange)), numbered(((1, 2),)))


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


def _step(name: str, side: int, products: int, word: int) -> WorkloadKernel:
    """The factors of the butterflies are no weight: they are computed."""
    return WorkloadKernel(
        name,
        KernelType.SYSTOLIC,
        KernelVariant.GEMM_INPUT1_WEIGHT,
        1,
        side,
        products,
        side,
        input_bytes=side * side * word,
        output_bytes=side * side * word,
        tiling=Dim.NONE,
        direction=None,
        configuration=ANY_CONFIGURATION,
    )
