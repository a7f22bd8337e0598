"""The part of the report on kernels: operations, bytes and time of each, and the roofs of the machine."""

from typing import Final

from dfcompile.report.figure import figure, record

BOUND_BY: Final = ("compute", "memory", "network")


@record
class RoofsSummary:
    """Rates that kernels attain at most; above the peak are only those that join many streams in a cycle."""

    flop_per_s: float = figure("of all multiply-adders, two operations each and cycle", unit="FLOP/s")
    dram_bytes_per_s: float | None = figure("between the chip and its DRAM; `null`: unlimited", unit="B/s")
    network_bytes_per_s: float = figure(
        "that reach the chip from others, in whichever collective is fastest, along all dimensions of the "
        "network together; 0 on one chip",
        unit="B/s",
    )


@record
class KernelGroupSummary:
    """Kernels that are equal in all figures."""

    kernels: tuple[str, ...] = figure("names, in order of execution", least=1)
    count: int = figure("how many there are; all other figures are of one of them", unit="kernels", least=1)
    op: str = figure("type of the canonical operator; empty of tasks that belong to none")
    flop: int = figure("`2 outer m k n` of a contraction, one per element of any other kernel [ko24]")
    dram_bytes: int = figure(
        "read from DRAM for it and written to DRAM; what several kernels read together is shared in proportion "
        "to what each of them reads"
    )
    chip_bytes: int = figure(
        "that its tasks read and write, through FIFOs, SRAM or DRAM, each element as often as they do"
    )
    network_bytes: float = figure("that the exchanges of its results bring to a chip")
    time_s: float = figure("of it: compute, memory and network time joined as `--overlap` says; kernels overlap")
    compute_s: float = figure("from the start of its first task to the end of its last one, replayed")
    memory_s: float = figure("DRAM bytes / bandwidth")
    network_s: float = figure("exchanges of its results with other chips")
    bound_by: str = figure("the largest of its times: `compute`, `memory` or `network`", choices=BOUND_BY)
