"""Times of kernels under real tilings, memory by memory: whole granules, double buffers, accumulators."""

import math
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from dfcompile.errors import InfeasibleError
from dfcompile.language_models.machines.device import Device, MemoryLevel
from dfcompile.language_models.steps.kernel import Kernel, Work
from dfcompile.language_models.times.step_time import KernelTime, roofline, slower_of
from dfcompile.records import replace

ATTENTION = (Work.PREFILL_ATTENTION, Work.DECODE_ATTENTION, Work.PREFILL_LATENT, Work.DECODE_LATENT)
PRODUCTS = (Work.GEMM, Work.EXPERTS)
MOST_SPLITS = 64  # even splits of an extent that are tried; above that powers of two
MOST_TILES = 1_000_000  # of two ranks together; above, the proved bound alone
_WORDS = 2**62


class Product(Struct, frozen=True):
    """``C[m, n] = A[m, k] B[k, n]``, and the bytes of an element of each; ``sum_bytes`` is an accumulator's."""

    m: int
    k: int
    n: int
    a_bytes: float = 2.0
    b_bytes: float = 2.0
    c_bytes: float = 2.0
    sum_bytes: float = 4.0

    @property
    def compulsory_bytes(self) -> float:
        """Every operand once."""
        return self.m * self.k * self.a_bytes + self.k * self.n * self.b_bytes + self.m * self.n * self.c_bytes


class Memory(Struct, frozen=True):
    """What tiles stand in: bytes, whether streamed operands are held twice, and what extents are multiples of."""

    capacity_bytes: float
    granule: tuple[int, int, int] = (1, 1, 1)
    buffers: int = 2


class Tile(Struct, frozen=True):
    """A tile, what stays while the others stream (C, A or B; K: parts of sums are spilled), and the traffic."""

    m: int
    k: int
    n: int
    order: str
    traffic_bytes: float
    held_bytes: float

    @property
    def name(self) -> str:
        """Extents and order as text."""
        return f"{self.m}x{self.k}x{self.n}/{self.order}"


@lru_cache(maxsize=4096)
def best_tile(product: Product, memory: Memory) -> Tile | None:
    """Return the tile of the least traffic, of those the one that holds least; none if not even a granule fits."""
    fitting = (tile for tile in _tiles(product, memory) if tile.held_bytes <= memory.capacity_bytes)
    return min(fitting, key=lambda tile: (tile.traffic_bytes, tile.held_bytes, tile.order), default=None)


def extents_of(extent: int, granule: int) -> tuple[int, ...]:
    """Return the extents of tiles that are tried: even splits and powers of two, as whole granules."""
    splits = {-(-extent // parts) for parts in range(1, min(extent, MOST_SPLITS) + 1)}
    size = granule
    while size < extent:
        splits.add(size)
        size *= 2
    return tuple(sorted({-(-one // granule) * granule for one in splits}))


def _tiles(product: Product, memory: Memory) -> Iterator[Tile]:
    rows, depths, columns = map(extents_of, (product.m, product.k, product.n), memory.granule)
    gm, gk, gn = memory.granule
    for tm in rows:
        for tn in columns:
            yield _tile(product, memory, (tm, gk if gk > 1 else gm, tn), "C")
    for tm in rows:
        for tk in (product.k, *depths):
            yield _tile(product, memory, (tm, tk, gn), "A")
    for tn in columns:
        yield _tile(product, memory, (gm, product.k, tn), "B")


def _tile(product: Product, memory: Memory, extents: tuple[int, int, int], stays: str) -> Tile:
    """Return the tile of which sums stay while a thin slice of both operands streams by, or a panel of A or of B.

    Of a part of a panel of A, sums are read and written again.
    """
    m, k, n = extents
    a_passes, a_copies = (1, 1) if stays == "A" else (-(-product.n // n), memory.buffers)
    b_passes, b_copies = (1, 1) if stays == "B" else (-(-product.m // m), memory.buffers)
    parts = -(-product.k // k) if stays == "A" else 1
    traffic = (
        product.m * product.k * product.a_bytes * a_passes
        + product.k * product.n * product.b_bytes * b_passes
        + product.m * product.n * product.c_bytes
        + 2 * product.m * product.n * product.sum_bytes * (parts - 1)
    )
    held = m * k * product.a_bytes * a_copies + k * n * product.b_bytes * b_copies + m * n * product.sum_bytes
    return Tile(m, k, n, "K" if parts > 1 else stays, traffic, held)


class Level(Struct, frozen=True):
    """Traffic into a memory on the chip, and what it comes from."""

    name: str
    traffic_bytes: float
    bytes_per_s: float
    tile: str


def product_of(kernel: Kernel) -> Product:
    """Return one of the products that a kernel is: rows of one expert, or of one element of its batch."""
    m, k, n, outer = kernel.m, kernel.k, kernel.n, kernel.batch
    a_bytes, c_bytes = kernel.act_in_bytes / (m * k * outer), kernel.act_out_bytes / (m * n * outer)
    b_bytes = kernel.weight_bytes / (k * n * outer * kernel.distinct)
    return Product(math.ceil(m / kernel.distinct), k, n, a_bytes, b_bytes, c_bytes)


def is_plain_product(kernel: Kernel) -> bool:
    """Whether a kernel multiplies with weights, and its activations are not fused away."""
    return kernel.work in PRODUCTS and kernel.act_in_bytes > 0 and kernel.act_out_bytes > 0 and kernel.weight_bytes > 0


def tiled(kernel: Kernel, device: Device) -> KernelTime:
    """Return the time of the best tiling found: whole granules, waves over cores, and every memory on the chip.

    Attention keeps a panel of queries and streams keys and values past it. Everything else moves once.

    Raises:
        UserError: the device has no rate for the kernel's number format.
        InfeasibleError: a memory on the chip does not hold a granule.
    """
    lowest = roofline(kernel, device)
    compute = lowest.compute_s * padding(kernel, device) / device.compute_efficiency
    bandwidth = device.bytes_per_s * device.memory_efficiency
    traffic, tile, inner, left = float(kernel.bytes), "", 0.0, list[int]()
    if is_plain_product(kernel) and device.levels:
        found = list(level_traffic(kernel, device))
        # Rounding of bytes per element may be a hair below what moves once.
        traffic, tile = max(float(kernel.bytes), found[0].traffic_bytes), found[0].tile
        inner = max((one.traffic_bytes / one.bytes_per_s for one in found[1:]), default=0.0)
        left = [*(round(one.traffic_bytes) for one in found[1:]), kernel.bytes]
    elif kernel.work in ATTENTION and device.levels:
        traffic += kernel.kv_read_bytes * (_query_passes(kernel, device) - 1)
    memory = max(traffic / bandwidth, inner)
    one = slower_of(compute, memory, is_async=kernel.is_async)
    launch = 0.0 if kernel.is_async else device.launch_s
    return KernelTime(one.compute_s, one.memory_s, one.exec_s + launch, one.bound, round(traffic), tile, tuple(left))


def padding(kernel: Kernel, device: Device) -> float:
    """Return how much longer arrays of a granule take than the multiply-accumulates alone: edges, fill, waves."""
    gm, gk, gn = device.granule
    if kernel.work in (Work.VECTOR, Work.RECURRENT) or not kernel.macs or device.granule == (1, 1, 1):
        return 1.0
    rows = math.ceil(kernel.m / kernel.distinct)
    m, k, n = (-(-extent // granule) * granule for extent, granule in ((rows, gm), (kernel.k, gk), (kernel.n, gn)))
    passes = (m // gm) * (n // gn) * kernel.batch * kernel.distinct
    waves = math.ceil(passes / device.cores) * device.cores / passes
    filled = 1 + (gm + gn) / (k + gm + gn) if m * n > gm * gn else 1.0
    return m * k * n / (rows * kernel.k * kernel.n) * waves * filled


def level_traffic(kernel: Kernel, device: Device) -> Iterator[Level]:
    """Yield the traffic into each memory on the chip, outermost first: its tile is the next one's product.

    Raises:
        InfeasibleError: a memory does not hold a granule.
    """
    product, times, bytes_per_s = product_of(kernel), kernel.batch * kernel.distinct, device.bytes_per_s
    for level in device.levels:
        product, split, shared = _per_instance(product, level, device)
        tile = best_tile(product, Memory(level.usable_bytes, device.granule))
        if tile is None:
            wanted = f"no tile of {'x'.join(map(str, device.granule))} of a product of depth {product.k}"
            held = f"memory {level.name!r} of {level.usable_bytes} bytes holds {wanted}"
            raise InfeasibleError(f"system {device.name!r}: {held}")
        # Instances that share an operand get it broadcast: it leaves the memory above once.
        traffic = times * (split * tile.traffic_bytes - (split - 1) * shared)
        yield Level(level.name, traffic, bytes_per_s, tile.name)
        counts = (-(-product.m // tile.m), -(-product.k // tile.k), -(-product.n // tile.n))
        times, bytes_per_s = times * split * math.prod(counts), level.bytes_per_s
        product = replace(product, m=min(tile.m, product.m), k=min(tile.k, product.k), n=min(tile.n, product.n))


def _per_instance(product: Product, level: MemoryLevel, device: Device) -> tuple[Product, int, float]:
    """Return the product of one instance of a memory, over how many it is split, and the bytes that all share."""
    instances = device.instances(level)
    if instances <= 1:
        return product, 1, 0.0
    if product.m >= product.n:
        rows = -(-product.m // min(instances, product.m))
        return replace(product, m=rows), -(-product.m // rows), product.k * product.n * product.b_bytes
    columns = -(-product.n // min(instances, product.n))
    return replace(product, n=columns), -(-product.n // columns), product.m * product.k * product.a_bytes


def _query_passes(kernel: Kernel, device: Device) -> int:
    """How often keys and values stream past panels of queries; once if those of a head stay."""
    per_head = kernel.kv_read_bytes / kernel.batch
    if not per_head or per_head <= device.cache_bytes / 2:
        return 1
    row = (kernel.act_in_bytes + 2 * kernel.act_out_bytes) / (kernel.m * kernel.batch)
    rows = max(1, int(device.cache_bytes / 2 / row)) if row else kernel.m
    return -(-kernel.m // rows)


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
    from dfcompile.io_bounds.curve import Rules
    from dfcompile.io_bounds.einsum.plain import gemm, plain_curve
    from dfcompile.io_bounds.proved import Contracted, proved_words

    macs, moved = m * k * n, m * k + k * n + m * n
    if size < 1:
        return moved
    proved = proved_words(Contracted(macs, 1, moved, m * n), size)
    _, middle, large = sorted((m, k, n))
    if 4 * math.isqrt(middle * large) > MOST_TILES or macs > _WORDS:
        return proved
    return max(proved, plain_curve(gemm(m, k, n), Rules()).at(size) or 0)
