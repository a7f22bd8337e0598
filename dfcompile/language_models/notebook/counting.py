"""What the notebook counts of one layer, dimension for dimension; what is wrong with it is kept on purpose.

The order of multiplications and divisions is the notebook's, so that the same roundings come out.
"""

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.language_models.machines.device import Device

PREFILL_ROOT = 1.73  # the notebook's square root of 3, which it takes for the mean of a ramp
BYTES_PER_VALUE = 2
_KEYS = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers")


class NotebookModel(Struct, frozen=True):
    """The five fields that the notebook reads."""

    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    layers: int

    @property
    def sub_dmodel(self) -> int:
        """What the notebook takes for the head's extent."""
        return self.hidden // self.heads

    @property
    def columns(self) -> int:
        """Columns of queries, keys and values together."""
        return self.sub_dmodel * (self.heads + self.kv_heads * 2)


class NotebookKernel(Struct, frozen=True):
    """One row of the notebook's tables; what does not apply is none.

    Attributes:
        kind: type.
        name: of the row.
        m: first dimension.
        k: second dimension.
        n: third dimension.
        batch: sequences.
        grouped: ``grouped_q``, which a slip of the pen keeps at 1.
    """

    kind: str
    name: str
    m: int
    k: int
    n: int
    batch: int
    grouped: float = 1

    @property
    def is_cache(self) -> bool:
        """Whether it moves keys and values, and multiplies nothing."""
        return self.kind.endswith("KVCache")

    @property
    def compute(self) -> int | float | None:
        """Multiply-accumulates."""
        return None if self.is_cache else self.m * self.grouped * self.k * self.n * self.batch

    @property
    def weight(self) -> int | None:
        """Elements of weights."""
        return self.k * self.n if self.kind.endswith("_Mw") else None

    @property
    def kv_cache(self) -> int | None:
        """Elements of keys and values."""
        return self.m * self.k * self.n * self.batch if self.is_cache else None


class NotebookMachine(Struct, frozen=True):
    """The notebook's five figures of a machine, in cores, Hz, MACs per cycle and core, bytes per s, bytes."""

    name: str
    cores: int
    frequency: float
    macs_per_cycle: int
    bandwidth: float
    cache: int

    @property
    def macs_per_second(self) -> float:
        """Of all cores."""
        return self.cores * self.frequency * self.macs_per_cycle


class ChunkSizes(Struct, frozen=True):
    """Tokens of a chunk: those of a prompt after ``prompt_context``, and decodes at ``decode_context``."""

    prompt_context: int
    prompt: int
    decode_context: int
    decodes: int


class Estimate(Struct, frozen=True):
    """What the notebook says of a kernel; what does not apply is none.

    Attributes:
        tile: extents as text.
        compute_cycles: of the multiply-adders.
        memory_cycles: of the operands' bytes.
        ratio: of the two.
        cycles: that it takes; none for transfers that it takes as free.
        bound: Compute or Memory.
    """

    tile: str | None = None
    compute_cycles: float | None = None
    memory_cycles: float | None = None
    ratio: float | None = None
    cycles: float | None = None
    bound: str | None = None


def notebook_model(values: Mapping[str, object], where: str) -> NotebookModel:
    """Return the notebook's model of a configuration.

    Raises:
        UserError: one of the five keys is missing, as the notebook's KeyError has it, or is no whole number.
    """
    found = []
    for key in _KEYS:
        value = values.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UserError(f"{where}: key {key!r}: found {value!r} against a whole number, which the notebook needs")
        found.append(value)
    return NotebookModel(*found)


def notebook_machine(device: Device) -> NotebookMachine:
    """Return the notebook's figures of a device; its one rate is the first that the device has.

    Raises:
        UserError: its rate is no whole number per cycle and core, or a memory on the chip is missing.
    """
    rate = next(iter(device.macs_per_s.values()))
    per_cycle = rate / (device.cores * device.frequency_hz) if device.frequency_hz else 0.0
    if not per_cycle or per_cycle != int(per_cycle):
        found = f"found {per_cycle:g} MACs per cycle and core against a whole number, which --compat notebook needs"
        raise UserError(f"system {device.name!r}: {found} (NVL-AX and JGS are its machines)")
    if not device.cache_bytes:
        raise UserError(f"system {device.name!r}: found no memory on the chip, which --compat notebook needs")
    return NotebookMachine(
        device.name, device.cores, device.frequency_hz, int(per_cycle), device.bytes_per_s, device.cache_bytes
    )


def _feed_forward(model: NotebookModel, kind: str, rows: int, batch: int) -> tuple[NotebookKernel, ...]:
    hidden, inner = model.hidden, model.intermediate
    return (
        NotebookKernel(kind, "O*W", rows, hidden, hidden, batch),
        NotebookKernel(kind, "FFN_up", rows, hidden, inner, batch),
        NotebookKernel(kind, "FFN_gate", rows, hidden, inner, batch),
        NotebookKernel(kind, "FFN_down", rows, inner, hidden, batch),
    )


def _layer(model: NotebookModel, operand: str, rows: int, context: int, batch: int) -> tuple[NotebookKernel, ...]:
    return (
        NotebookKernel(f"{operand}_Mw", "Q/K/V*W", rows, model.hidden, model.columns, batch),
        NotebookKernel(f"{operand}_Mqa", "Q*gK", rows, model.hidden, context, batch),
        NotebookKernel(f"{operand}_Mqa", "Q*gK*gV", rows, model.hidden, context, batch),
        *_feed_forward(model, f"{operand}_Mw", rows, batch),
    )


def prefill(model: NotebookModel, length: int, batch: int) -> tuple[NotebookKernel, ...]:
    """Return the kernels of a prompt."""
    store = NotebookKernel("Async_KVCache", "KVCache_Store", length, model.sub_dmodel, 2 * model.kv_heads, batch)
    return (*_layer(model, "Ma", length, length, batch), store)


def decode(model: NotebookModel, context: int, batch: int) -> tuple[NotebookKernel, ...]:
    """Return the kernels of one more token per sequence."""
    read = NotebookKernel("KVCache", "KVCache_Read", context, model.sub_dmodel, 2 * model.kv_heads, batch)
    projection, *others = _layer(model, "Va", 1, context, batch)
    return (projection, read, *others)


def chunk_sizes(length: int, answer: int, chunk: int) -> ChunkSizes:
    """Return the notebook's mean chunk; dividing by the root of 3 takes the mean square for the mean."""
    decodes = chunk * answer // (length + answer)
    prompt = chunk - decodes
    return ChunkSizes(math.trunc(length / PREFILL_ROOT - prompt // 2), prompt, length + answer // 2, decodes)


def chunked(model: NotebookModel, sizes: ChunkSizes) -> tuple[NotebookKernel, ...]:
    """Return the kernels of a chunk; those of decodes have the cache's width where the context belongs."""
    hidden, dim, pair = model.hidden, model.sub_dmodel, 2 * model.kv_heads
    tokens, narrow = sizes.prompt + sizes.decodes, dim * model.kv_heads
    return (
        NotebookKernel("Ma_Mw", "Q/K/V*W", tokens, hidden, model.columns, 1),
        NotebookKernel("KVCache", "dKVCache_Read", sizes.decode_context, dim, pair, sizes.decodes),
        NotebookKernel("Va_Mqa", "dQ*gK", 1, hidden, narrow, sizes.decodes),
        NotebookKernel("Va_Mqa", "dQ*gK*gV", 1, hidden, narrow, sizes.decodes),
        NotebookKernel("Async_KVCache", "pKVCache_Read", sizes.prompt_context, dim, pair, 1),
        NotebookKernel("Ma_Mqa", "pQ*gK", sizes.prompt, hidden, sizes.prompt_context, 1),
        NotebookKernel("Ma_Mqa", "pQ*gK*gV", sizes.prompt, hidden, sizes.prompt_context, 1),
        NotebookKernel("Async_KVCache", "KVCache_Store", sizes.prompt, dim, pair, 1),
        *_feed_forward(model, "Ma_Mw", tokens, 1),
    )


def estimate(kernel: NotebookKernel, machine: NotebookMachine) -> Estimate:
    """Return the notebook's cycles of a kernel, by its theoretical tiling.

    It has real extents, the whole cache, and bytes of the operands but not of the result.
    """
    if kernel.kv_cache is not None:
        if kernel.kind != "KVCache":
            return Estimate()
        moved = kernel.kv_cache * BYTES_PER_VALUE
        return Estimate(cycles=moved / machine.bandwidth * machine.frequency, bound="Memory")
    compute = kernel.compute or 0
    m, k, n = tile_of(folded((kernel.m, kernel.k, kernel.n), kernel.batch), machine.cache)
    block = m * k * n
    compute_cycles = block / machine.macs_per_second * machine.frequency * compute / block
    memory_cycles = (m * k + n * k) * BYTES_PER_VALUE / machine.bandwidth * machine.frequency * compute / block
    is_compute = compute_cycles > memory_cycles
    return Estimate(
        tile=f"{m:.1f}x{k:.1f}x{n:.1f}",
        compute_cycles=compute_cycles,
        memory_cycles=memory_cycles,
        ratio=memory_cycles / compute_cycles if compute_cycles else math.nan,
        cycles=compute_cycles if is_compute else memory_cycles,
        bound="Compute" if is_compute else "Memory",
    )


def folded(extents: tuple[int, int, int], batch: int) -> tuple[float, float, float]:
    """Fold a batch into rows or columns, so that the result is as square as possible; weights may grow by it."""
    m, k, n = extents
    if batch <= 1:
        return extents
    if m > n and m / n > batch:
        return m, k, n * batch
    if n > m and n / m > batch:
        return m * batch, k, n
    side = m * ((batch / (m / n)) ** (1 / 2))
    return side, k, side


def tile_of(extents: Sequence[float], cache: float) -> tuple[float, float, float]:
    """Return the tile that the notebook takes for the best one of a product."""
    small, middle, large = sorted(range(3), key=lambda at: extents[at])
    tile = list(extents)
    side = (cache / 3 / BYTES_PER_VALUE) ** (1 / 2)
    if extents[small] >= side:
        return side, side, side
    twice = extents[small] * 2
    side = (-twice + math.sqrt(twice**2 + 4 * (cache / BYTES_PER_VALUE))) / 2
    if extents[middle] >= side:
        tile[middle] = tile[large] = side
    else:
        room = cache - (extents[small] * extents[middle] * BYTES_PER_VALUE)
        tile[large] = min(tile[large], room / (BYTES_PER_VALUE * (extents[small] + extents[middle])))
    return tile[0], tile[1], tile[2]
