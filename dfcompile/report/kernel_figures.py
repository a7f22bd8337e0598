"""The part of the report on kernels: operations, bytes and time of each, and the roofs of the machine."""

from typing import Final

from dfcompile.report.figure import figure, record

BOUND_BY: Final = ("compute", "memory", "network")


@record
class RoofsSummary:
    """Rates that kernels attain at most; above the peak are only those that join many streams in a cycle."""

    flop_per_s: float = figure(unit="FLOP/s", meaning="of all multiply-adders, two operations each and cycle")
    dram_bytes_per_s: float | None = figure(unit="B/s", meaning="between the chip and its DRAM; `null`: unlimited")
    network_bytes_per_s: float = figure(
        unit="B/s",
        meaning="that reach the chip from others, in whichever collective is fastest, along all dimensions of the "
        "network together; 0 on one chip",
    )


@record
class KernelGroupSummary:
    """Kernels that are equal in all figures."""

    kernels: tuple[str, ...] = figure(meaning="names, in order of execution", least=1)
    count: int = figure(unit="kernels", meaning="how many there are; all other figures are of one of them", least=1)
    op: str = figure(meaning="type of the canonical operator; empty of tasks that belong to none")
    flop: int = figure(
        unit="FLOP", meaning="`2 outer m k n` of a contraction, one per element of any other kernel [ko24]"
    )
    dram_bytes: int = figure(
        unit="bytes",
        meaning="read from DRAM for it and written to DRAM; what several kernels read together is shared in proportion "
        "to what each of them reads",
    )
    chip_bytes: int = figure(
        unit="bytes",
        meaning="that its tasks read and write, through FIFOs, SRAM or DRAM, each element as often as they do",
    )
    network_bytes: float = figure(unit="bytes", meaning="that the exchanges of its results bring to a chip")
    time_s: float = figure(
        unit="s", meaning="of it: compute, memory and network time joined as `--overlap` says; kernels overlap"
    )
    compute_s: float = figure(unit="s", meaning="from the start of its first task to the end of its last one, replayed")
    memory_s: float = figure(unit="s", meaning="DRAM bytes / bandwidth")
    network_s: float = figure(unit="s", meaning="exchanges of its results with other chips")
    bound_by: str = figure(
        meaning="the largest of its times: `compute`, `memory` or `network`",
        choices=BOUND_BY,
    )
