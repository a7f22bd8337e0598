"""What the assignment of kernels to configurations needs to know: a chip's figures kernel by kernel, as numbers."""

from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.intra_chip.cores import CoreTable


class FlowReader(Struct, frozen=True):
    """A kernel that reads a tensor, and the SRAM that it takes for it.

    Attributes:
        kernel: its number.
        border_bytes: where the tensor comes from DRAM; of several readers the largest counts.
        inside_bytes: where the tensor is made in the same configuration; of several readers the largest counts.
    """

    kernel: int
    border_bytes: float
    inside_bytes: float


class FlowTerms(Struct, frozen=True):
    """A tensor that streams between kernels, or between kernels and DRAM.

    Attributes:
        source: number of the kernel that makes it, or `NOBODY`.
        readers: of it.
        leaves: whether it is written to DRAM in any case.
        read_ns: time in which a configuration reads it.
        write_ns: time in which it is written.
        written_bytes: of SRAM, where it is written to DRAM.
        live_bytes: of DRAM while it waits.
        sent_ns: time in which a stage of a pipeline sends it on.
    """

    source: int
    readers: tuple[FlowReader, ...]
    leaves: bool
    read_ns: float
    write_ns: float
    written_bytes: float
    live_bytes: float
    sent_ns: float = 0.0


class HeldTerms(Struct, frozen=True):
    """A tensor that is loaded and then held by each configuration with one of its kernels."""

    kernels: tuple[int, ...]
    memory_ns: float
    sram_bytes: float


class TiledWeights(Struct, frozen=True):
    """A kernel that fits SRAM only alone, with its weights in tiles."""

    kernel: int
    saved_sram_bytes: float
    added_memory_ns: float


class FusionTerms(Struct, frozen=True):
    """Figures of kernels, and limits.

    Attributes:
        least_ns: a time that no chain beats: the unit of time.
        cores: of the chip.
        compute_ns: of each kernel, where times of kernels add up; else None: cores are split among kernels.
        tables: of cores and cycles, per kernel; empty where times add up.
        cycle_ns: time of one cycle, per kernel.
        network_ns: of each kernel, one column for each part that overlaps with the others.
        flows: tensors that stream.
        held: tensors that are held.
        tiled: kernels that need their weights in tiles.
        sram_bytes: what configurations may take; infinite if that is not limited.
        dram_bytes: what a stage may take; infinite if that is not limited.
        kept_bytes: of each kernel, in the DRAM of its stage all the time.
        waiting: of each kernel: how many times `FlowTerms.live_bytes` wait while it runs.
        repeats: of each kernel: how often its configuration runs, that of the most being it.
        apart: kernels that share configurations only with each other; 0 or all: none.
        most_ns: a time that no configuration takes once, where some run more often.
    """

    least_ns: float
    cores: int
    compute_ns: Column | None
    tables: tuple[CoreTable, ...]
    cycle_ns: Column
    network_ns: tuple[Column, ...]
    flows: tuple[FlowTerms, ...]
    held: tuple[HeldTerms, ...]
    tiled: tuple[TiledWeights, ...]
    sram_bytes: float
    dram_bytes: float
    kept_bytes: Column
    waiting: tuple[int, ...]
    repeats: tuple[int, ...]
    apart: int
    most_ns: float
