"""The part of the report on mappings: attained, bound, ideal, and where the time goes (docs/report-format.md)."""

from typing import Final

from dfcompile.report.figure import figure, record
from dfcompile.report.kernel_figures import BOUND_BY, KernelGroupSummary, RoofsSummary

ACCESSES: Final = ("read", "written")
IDEAL_BOUND_BY: Final = ("compute", "memory", "chain")
COLLECTIVES: Final = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")


@record
class ConfigurationSummary:
    """One configuration of a mapping: kernels that are on the chip together [ko24]."""

    kernels: tuple[str, ...] = figure(meaning="that are on the chip together", least=1)
    time_s: float = figure(
        unit="s",
        meaning="of it: compute, memory and network time joined as `--overlap` says",
        heading="time\n{}s",
        table="configurations",
    )
    compute_s: float = figure(unit="s", meaning="cycles of its schedule, replayed, × period")
    memory_s: float = figure(unit="s", meaning="DRAM traffic / bandwidth")
    network_s: float = figure(unit="s", meaning="exchanges with other chips")
    dram_bytes: int = figure(
        unit="bytes", meaning="read from and written to DRAM", heading="DRAM\nbytes", table="configurations"
    )
    sram_bytes: int = figure(
        unit="bytes",
        meaning="FIFOs, arrays and parts of arrays of the spatial block with most of them",
        heading="SRAM\nbytes",
        table="configurations",
    )
    bound_by: str = figure(
        meaning="the largest of its times: `compute`, `memory` or `network`",
        heading="bound by",
        table="configurations",
        choices=BOUND_BY,
    )


@record
class StreamsConfigurationSummary:
    """One configuration of the mapping with perfect streams."""

    kernels: tuple[str, ...] = figure(meaning="that are on the chip together", least=1)
    time_s: float = figure(unit="s", meaning="of it")
    bound_by: str = figure(meaning="the largest of its times", choices=BOUND_BY)


@record
class IdealSummary:
    """The terms of a time that no known algorithm beats on the machine, however operators are lowered."""

    bound_by: str = figure(meaning="the largest of the terms: `compute`, `memory` or `chain`", choices=IDEAL_BOUND_BY)
    compute_s: float | None = figure(
        unit="s",
        meaning="least work of every operator by any known expansion / all PEs of all chips available, in the widest "
        "words; `null` if passes, `--volumes array` or another `--granularity` change what expansions give",
    )
    memory_s: float = figure(
        unit="s", meaning="`traffic.proved_bytes` / DRAM bandwidth of all chips available: every expansion moves them"
    )
    chain_s: float | None = figure(
        unit="s",
        meaning="longest chain of dependent work that no known expansion avoids, on however many PEs; `null` as "
        "`compute_s`, and on several chips",
    )


@record
class PerfectStreamsSummary:
    """The operators mapped by the model of [ko24]: perfect streams between kernels, any parallelism, no tasks.

    The shardings over chips that are tried come from it. An algorithm that this model does not know may be faster.
    """

    time_s: float = figure(unit="s", meaning="for one inference")
    chips: int = figure(unit="chips", meaning="that it uses: as many as give its least time", least=1)
    configs: int = figure(unit="configurations", meaning="that follow one another on the chip", least=1)
    optimal: bool = figure(
        meaning="whether it is proved that no assignment of kernels to configurations is faster, under no sharding "
        "over a number of chips that was tried"
    )
    gap: float = figure(meaning="(`time_s` − `bound_time_s`) / `bound_time_s`")
    bound_time_s: float = figure(unit="s", meaning="that no assignment, under no sharding, can fall below")
    dram_bytes: float = figure(unit="bytes", meaning="read from and written to DRAM")
    network_bytes: float = figure(unit="bytes", meaning="of the messages between its chips")
    solver: str = figure(meaning="what found the assignment")
    solver_s: float = figure(
        unit="s", meaning="wall time of the solver; the one field that differs between runs", decimals=3
    )
    configurations: tuple[StreamsConfigurationSummary, ...] = figure(meaning="in their order", of="configs")


@record
class TimePartsSummary:
    """Where the attained time goes: parts that add up to it."""

    work_s: float = figure(
        unit="s",
        meaning="all tasks at work on all PEs, an element per cycle: work / PEs",
        heading="work /\npeak {}s",
        table="parts",
    )
    idle_elements_s: float = figure(
        unit="s",
        meaning="PEs without a task: the expansion has fewer tasks at a time than there are PEs",
        heading="PEs with-\nout task {}s",
        table="parts",
    )
    waiting_s: float = figure(
        unit="s",
        meaning="tasks that wait for a buffer that others of their spatial block fill, or for a first element",
        heading="phases at\nbuffers {}s",
        table="parts",
    )
    throttled_s: float = figure(
        unit="s",
        meaning="tasks slowed down by those that they stream with",
        heading="slower\nstreams {}s",
        table="parts",
    )
    whole_blocks_s: float = figure(
        unit="s",
        meaning="tasks that have ended while others of their spatial block run",
        heading="whole\nblocks {}s",
        table="parts",
    )
    memory_s: float = figure(
        unit="s",
        meaning="DRAM traffic beyond the schedule",
        heading="memory\n{}s",
        table="parts",
        hidden=0.0,
    )
    network_s: float = figure(
        unit="s",
        meaning="exchanges between chips beyond both",
        heading="network\n{}s",
        table="parts",
        hidden=0.0,
    )


@record
class PhaseSummary:
    """A spatial block of the attained schedule."""

    configuration: int = figure(meaning="number of the configuration, from 0")
    start_cycle: int = figure(unit="cycles", meaning="of the schedule")
    end_cycle: int = figure(unit="cycles", meaning="of the schedule")
    tasks: int = figure(unit="tasks", meaning="on the chip together", least=1)


@record
class ExchangeSummary:
    """A collective by which chips change the layout of a tensor."""

    tensor: str = figure(meaning="that is exchanged", heading="tensor", table="exchanges")
    source: str = figure(meaning="the kernel that makes it, in whose configuration it is exchanged")
    readers: tuple[str, ...] = figure(
        meaning="kernels that need it so; none of an output of the model that is completed"
    )
    collective: str = figure(
        meaning="`all-gather`, `reduce-scatter`, `all-reduce` or `all-to-all`",
        heading="collective",
        table="exchanges",
        choices=COLLECTIVES,
        of="kind",
    )
    dimensions: tuple[int, ...] = figure(meaning="of the network, along which chips take part; 0 is the innermost")
    before: str = figure(
        meaning="layout along them, such as `split by axis 0`, `whole`, `partial, to be combined by sum`",
        heading="from",
        table="exchanges",
    )
    after: str = figure(meaning="layout along them then", heading="to", table="exchanges")
    message_bytes: int = figure(
        unit="bytes",
        meaning="that the chips of one group have of the tensor together, at most",
        heading="message\nbytes",
        table="exchanges",
    )
    moved_bytes: int = figure(unit="bytes", meaning="that all chips together receive")
    time_s: float = figure(unit="s", meaning="of it", heading="time\n{}s", table="exchanges")


@record
class LayoutSummary:
    """An array as the chips hold it for a kernel that reads or writes it."""

    configuration: int = figure(meaning="number of the kernel's configuration, from 0")
    kernel: str = figure(meaning="that reads or writes it")
    tensor: str = figure(meaning="the array")
    access: str = figure(meaning="`read` or `written`", choices=ACCESSES)
    held: tuple[str, ...] = figure(
        meaning="per dimension of the network, the innermost first: `split by axis 1`, `whole`, `partial over k, to be "
        "combined by sum`",
        least=1,
    )
    elements: int = figure(unit="elements", meaning="of the array")
    chip_elements: int = figure(unit="elements", meaning="of them on the chip with most")


@record
class MappingSummary:
    """Figures of a mapping: a schedule of the lowering's tasks on the machine, between a bound and an ideal."""

    machine: str = figure(meaning="name of the machine: `--system`", of="system.name")
    chips: int = figure(unit="chips", meaning="in use: of those available as many as give the least time", least=1)
    chips_available: int = figure(unit="chips", meaning="given by `--chips`", least=1)
    time_s: float = figure(
        unit="s",
        meaning="for one inference, attained: a schedule of these tasks, replayed, joined with memory and network",
        heading="time\n{}s",
        table="mapping",
    )
    bound_time_s: float = figure(
        unit="s",
        meaning="no schedule of these tasks on this machine is faster; on several chips none of as much work, however "
        "they share it",
        heading="bound\n{}s",
        table="mapping",
    )
    ideal_time_s: float = figure(
        unit="s",
        meaning="no known algorithm on this machine is faster, by whichever expansions and in however many tasks: the "
        "terms of `ideal` joined as `--overlap` says",
        heading="ideal\n{}s",
        table="mapping",
    )
    optimal: bool = figure(meaning="whether the bound is attained", of="is_optimal")
    best_chain: bool = figure(
        of="is_best_chain",
        meaning="whether it is proved that no other assignment of kernels to configurations is faster, each scheduled "
        "as it is, and kernels split over chips as they are",
    )
    gap: float = figure(meaning="(`time_s` − `bound_time_s`) / `bound_time_s`")
    configs: int = figure(
        unit="configurations",
        meaning="that follow one another on a chip",
        heading="configs",
        table="mapping",
        least=1,
    )
    dram_bytes: float = figure(
        unit="bytes", meaning="read from and written to DRAM", heading="DRAM\nbytes", table="mapping", cell=",.0f"
    )
    sram_bytes: int = figure(
        unit="bytes",
        meaning="FIFOs, arrays and parts of arrays of the spatial block with most of them, on one chip",
    )
    network_bytes: float = figure(
        unit="bytes",
        meaning="of the messages between chips: of each exchange what the chips of one group have together [ko24]",
        heading="network\nbytes",
        table="mapping",
        cell=",.0f",
    )
    moved_bytes: float = figure(unit="bytes", meaning="that all chips together receive from others")
    cost_usd: float = figure(
        unit="USD", meaning="price of the machine", heading="cost\nUSD", table="mapping", cell=",.2f"
    )
    power_w: float = figure(unit="W", meaning="power of the machine", heading="power\n{}W", table="mapping")
    energy_j: float = figure(unit="J", meaning="`power_w * time_s`", heading="energy\n{}J", table="mapping")
    utilization: float = figure(
        meaning="operations of the model, each once however many chips repeat it / (peak rate of all chips × `time_s`)",
        heading="util.\n%",
        table="mapping",
        after="network_bytes",
        cell=".1%",
        csv="mapping_utilization",
    )
    parts: TimePartsSummary = figure(meaning="where the time goes", prefix="part")
    configurations: tuple[ConfigurationSummary, ...] = figure(meaning="in their order, on one chip")
    exchanges: tuple[ExchangeSummary, ...] = figure(meaning="between chips; none on one chip")
    phases: tuple[PhaseSummary, ...] = figure(meaning="spatial blocks of all configurations, in their order")
    kernels: tuple[KernelGroupSummary, ...] = figure(meaning="what each does on one chip; equal ones together")
    roofs: RoofsSummary = figure(meaning="of one chip: what kernels attain at most", prefix="roof")
    ideal: IdealSummary = figure(meaning="what `ideal_time_s` is of", prefix="ideal")
    perfect_streams: PerfectStreamsSummary = figure(
        meaning="the same operators by the model of [ko24]", prefix="perfect_streams"
    )
    network_chips: tuple[int, ...] = figure(
        meaning="chips along each dimension of the network, the innermost first; absent on one chip",
        is_optional=True,
        default=(),
    )
    sharding: tuple[LayoutSummary, ...] = figure(
        meaning="how chips hold what each kernel reads and writes; absent on one chip", is_optional=True, default=()
    )
