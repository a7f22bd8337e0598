"""The least traffic of a product: dfcompile's own bounds at the capacity of each memory on the chip."""

import math
from functools import lru_cache

from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.steps.kernel import Kernel
from dfcompile.language_models.times.kernel_time import KernelTime, roofline, slower_of
from dfcompile.language_models.times.tiled import Product, is_plain_product, product_of

MOST_TILES = 1_000_000  # of two ranks together; above, the proved bound alone
_WORDS = 2**62


def bound(kernel: Kernel, device: Device) -> KernelTime:
    """Return the time that no tiling is below: peak rates, and the least traffic into every memory on the chip.

    A product moves what the best tiling of all does with a buffer of a memory's capacity, by the curve of `dfcompile
    bounds`; where that has too many tilings, what is proved of every schedule. Everything else moves once.

    Raises:
        UserError: the device has no rate for the kernel's number format.
    """
    lowest = roofline(kernel, device)
    if not is_plain_product(kernel) or kernel.distinct > 1:
        return lowest
    product, source, slowest = product_of(kernel), device.bytes_per_s, lowest.memory_s
    for level in device.levels:
        traffic = kernel.batch * least_bytes(product, level.capacity_bytes * device.instances(level))
        slowest = max(slowest, traffic / source)
        source = level.bytes_per_s
    return slower_of(lowest.compute_s, slowest)


def least_bytes(product: Product, capacity_bytes: float) -> float:
    """Return the bytes that a product moves at least with a buffer; elements count as the smallest of the three."""
    element = min(product.a_bytes, product.b_bytes, product.c_bytes)
    words = min(_WORDS, math.floor(capacity_bytes / element))
    return max(product.compulsory_bytes, element * _least_words(product.m, product.k, product.n, words))


@lru_cache(maxsize=4096)
def _least_words(m: int, k: int, n: int, size: int) -> int:
    from dfcompile.bounds.einsum.plain import gemm, plain_curve
    from dfcompile.bounds.proved import Contracted, proved_words
    from dfcompile.bounds.tilings import Rules

    macs, moved = m * k * n, m * k + k * n + m * n
    if size < 1:
        return moved
    proved = proved_words(Contracted(macs, 1, moved, m * n), size)
    _, middle, large = sorted((m, k, n))
    if 4 * math.isqrt(middle * large) > MOST_TILES or macs > _WORDS:
        return proved
    found = plain_curve(gemm(m, k, n), Rules()).at(size)
    return proved if found is None else max(proved, found)
