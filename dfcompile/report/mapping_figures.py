"""The part of the report on mappings: attained, bound, ideal, kernels, where the time goes (docs/report-format.md).

And what a mapping moves beside the least (docs/bounds.md).
"""

from typing import Final

from dfcompile.report.figure import figure, record

BOUND_BY: Final = ("compute", "memory", "network")


@record()
class RoofsSummary:
    """Rates that kernels attain at most; above the peak are only those that join many streams in a cycle."""

    flop_per_s: float = figure("of all multiply-adders, two operations each and cycle", unit="FLOP/s")
    dram_bytes_per_s: float | None = figure("between the chip and its DRAM; `null`: unlimited", unit="B/s")
    network_bytes_per_s: float = figure(
        "that reach the chip from others, in whichever collective is fastest, along all dimensions of the "
        "network together; 0 on one chip",
        unit="B/s",
    )


@record()
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


ACCESSES: Final = ("read", "written")
IDEAL_BOUND_BY: Final = ("compute", "memory", "chain")
COLLECTIVES: Final = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")


@record("configurations")
class ConfigurationSummary:
    """One configuration of a mapping: kernels that are on the chip together [ko24]."""

    kernels: tuple[str, ...] = figure("that are on the chip together", least=1)
    time_s: float = figure("of it: compute, memory and network time joined as `--overlap` says", heading="time\n{}s")
    compute_s: float = figure("cycles of its schedule, replayed, × period")
    memory_s: float = figure("DRAM traffic / bandwidth")
    network_s: float = figure("exchanges with other chips")
    dram_bytes: int = figure("read from and written to DRAM", heading="DRAM\nbytes")
    sram_bytes: int = figure(
        "FIFOs, arrays and parts of arrays of the spatial block with most of them", heading="SRAM\nbytes"
    )
    bound_by: str = figure(
        "the largest of its times: `compute`, `memory` or `network`", heading="bound by", choices=BOUND_BY
    )


@record()
class StreamsConfigurationSummary:
    """One configuration of the mapping with perfect streams."""

    kernels: tuple[str, ...] = figure("that are on the chip together", least=1)
    time_s: float = figure("of it")
    bound_by: str = figure("the largest of its times", choices=BOUND_BY)


@record()
class IdealSummary:
    """The terms of a time that no known algorithm beats on the machine, however operators are lowered."""

    bound_by: str = figure("the largest of the terms: `compute`, `memory` or `chain`", choices=IDEAL_BOUND_BY)
    compute_s: float | None = figure(
        "least work of every operator by any known expansion / all PEs of all chips available, in the widest "
        "words; `null` if passes, `--volumes array` or another `--granularity` change what expansions give"
    )
    memory_s: float = figure(
        "`traffic.proved_bytes` / DRAM bandwidth of all chips available: every expansion moves them"
    )
    chain_s: float | None = figure(
        "longest chain of dependent work that no known expansion avoids, on however many PEs; `null` as "
        "`compute_s`, and on several chips"
    )


@record()
class PerfectStreamsSummary:
    """The operators mapped by the model of [ko24]: perfect streams between kernels, any parallelism, no tasks.

    The shardings over chips that are tried come from it. An algorithm that this model does not know may be faster.
    """

    time_s: float = figure("for one inference")
    chips: int = figure("that it uses: as many as give its least time", unit="chips", least=1)
    configs: int = figure("that follow one another on the chip", unit="configurations", least=1)
    optimal: bool = figure(
        "whether it is proved that no assignment of kernels to configurations is faster, under no sharding "
        "over a number of chips that was tried"
    )
    gap: float = figure("(`time_s` − `bound_time_s`) / `bound_time_s`")
    bound_time_s: float = figure("that no assignment, under no sharding, can fall below")
    dram_bytes: float = figure("read from and written to DRAM")
    network_bytes: float = figure("of the messages between its chips")
    solver: str = figure("what found the assignment")
    solver_s: float = figure("wall time of the solver; the one field that differs between runs", decimals=3)
    configurations: tuple[StreamsConfigurationSummary, ...] = figure("in their order", of="configs")


@record("parts")
class TimePartsSummary:
    """Where the attained time goes: parts that add up to it."""

    work_s: float = figure("all tasks at work on all PEs, an element per cycle: work / PEs", heading="work /\npeak {}s")
    idle_elements_s: float = figure(
        "PEs without a task: the expansion has fewer tasks at a time than there are PEs",
        heading="PEs with-\nout task {}s",
    )
    waiting_s: float = figure(
        "tasks that wait for a buffer that others of their spatial block fill, or for a first element",
        heading="phases at\nbuffers {}s",
    )
    throttled_s: float = figure("tasks slowed down by those that they stream with", heading="slower\nstreams {}s")
    whole_blocks_s: float = figure(
        "tasks that have ended while others of their spatial block run", heading="whole\nblocks {}s"
    )
    memory_s: float = figure("DRAM traffic beyond the schedule", heading="memory\n{}s", hidden=0.0)
    network_s: float = figure("exchanges between chips beyond both", heading="network\n{}s", hidden=0.0)


@record()
class PhaseSummary:
    """A spatial block of the attained schedule."""

    configuration: int = figure("number of the configuration, from 0")
    start_cycle: int = figure("of the schedule")
    end_cycle: int = figure("of the schedule")
    tasks: int = figure("on the chip together", unit="tasks", least=1)


@record("exchanges")
class ExchangeSummary:
    """A collective by which chips change the layout of a tensor."""

    tensor: str = figure("that is exchanged", heading="tensor")
    source: str = figure("the kernel that makes it, in whose configuration it is exchanged")
    readers: tuple[str, ...] = figure("kernels that need it so; none of an output of the model that is completed")
    collective: str = figure(
        "`all-gather`, `reduce-scatter`, `all-reduce` or `all-to-all`",
        heading="collective",
        choices=COLLECTIVES,
        of="kind",
    )
    dimensions: tuple[int, ...] = figure("of the network, along which chips take part; 0 is the innermost")
    before: str = figure(
        "layout along them, such as `split by axis 0`, `whole`, `partial, to be combined by sum`", heading="from"
    )
    after: str = figure("layout along them then", heading="to")
    message_bytes: int = figure(
        "that the chips of one group have of the tensor together, at most", heading="message\nbytes"
    )
    moved_bytes: int = figure("that all chips together receive")
    time_s: float = figure("of it", heading="time\n{}s")


@record()
class LayoutSummary:
    """An array as the chips hold it for a kernel that reads or writes it."""

    configuration: int = figure("number of the kernel's configuration, from 0")
    kernel: str = figure("that reads or writes it")
    tensor: str = figure("the array")
    access: str = figure("`read` or `written`", choices=ACCESSES)
    held: tuple[str, ...] = figure(
        "per dimension of the network, the innermost first: `split by axis 1`, `whole`, `partial over k, to be "
        "combined by sum`",
        least=1,
    )
    elements: int = figure("of the array")
    chip_elements: int = figure("of them on the chip with most")


@record("mapping")
class MappingSummary:
    """Figures of a mapping: a schedule of the lowering's tasks on the machine, between a bound and an ideal."""

    machine: str = figure("name of the machine: `--system`", of="system.name")
    chips: int = figure("in use: of those available as many as give the least time", unit="chips", least=1)
    chips_available: int = figure("given by `--chips`", unit="chips", least=1)
    time_s: float = figure(
        "for one inference, attained: a schedule of these tasks, replayed, joined with memory and network",
        heading="time\n{}s",
    )
    bound_time_s: float = figure(
        "no schedule of these tasks on this machine is faster; on several chips none of as much work, however "
        "they share it",
        heading="bound\n{}s",
    )
    ideal_time_s: float = figure(
        "no known algorithm on this machine is faster, by whichever expansions and in however many tasks: the "
        "terms of `ideal` joined as `--overlap` says",
        heading="ideal\n{}s",
    )
    optimal: bool = figure("whether the bound is attained", of="is_optimal")
    best_chain: bool = figure(
        "whether it is proved that no other assignment of kernels to configurations is faster, each scheduled "
        "as it is, and kernels split over chips as they are",
        of="is_best_chain",
    )
    gap: float = figure("(`time_s` − `bound_time_s`) / `bound_time_s`")
    configs: int = figure("that follow one another on a chip", unit="configurations", heading="configs", least=1)
    dram_bytes: float = figure("read from and written to DRAM", heading="DRAM\nbytes", cell=",.0f")
    sram_bytes: int = figure("FIFOs, arrays and parts of arrays of the spatial block with most of them, on one chip")
    network_bytes: float = figure(
        "of the messages between chips: of each exchange what the chips of one group have together [ko24]",
        heading="network\nbytes",
        cell=",.0f",
    )
    moved_bytes: float = figure("that all chips together receive from others")
    cost_usd: float = figure("price of the machine", heading="cost\nUSD", cell=",.2f")
    power_w: float = figure("power of the machine", heading="power\n{}W")
    energy_j: float = figure("`power_w * time_s`", heading="energy\n{}J")
    utilization: float = figure(
        "operations of the model, each once however many chips repeat it / (peak rate of all chips × `time_s`)",
        heading="util.\n%",
        after="network_bytes",
        cell=".1%",
        csv="mapping_utilization",
    )
    parts: TimePartsSummary = figure("where the time goes")
    configurations: tuple[ConfigurationSummary, ...] = figure("in their order, on one chip")
    exchanges: tuple[ExchangeSummary, ...] = figure("between chips; none on one chip")
    phases: tuple[PhaseSummary, ...] = figure("spatial blocks of all configurations, in their order")
    kernels: tuple[KernelGroupSummary, ...] = figure("what each does on one chip; equal ones together")
    roofs: RoofsSummary = figure("of one chip: what kernels attain at most")
    ideal: IdealSummary = figure("what `ideal_time_s` is of")
    perfect_streams: PerfectStreamsSummary = figure("the same operators by the model of [ko24]")
    network_chips: tuple[int, ...] = figure(
        "chips along each dimension of the network, the innermost first; absent on one chip", default=()
    )
    sharding: tuple[LayoutSummary, ...] = figure(
        "how chips hold what each kernel reads and writes; absent on one chip", default=()
    )


@record()
class OperatorTrafficSummary:
    """What an operator moves in a mapping, beside its part of the least."""

    operator: str = figure("name; of operators that run as its result is made too")
    moved_bytes: int = figure("read from DRAM first for it, and its results written to DRAM")
    least_bytes: int = figure("in the plan that `least_bytes` of all is of")
    excess_bytes: int = figure("the difference; negative where it moves less than in that plan", least=None)


@record("traffic")
class TrafficSummary:
    """What the mapping moves to and from DRAM, beside what is possible with the chip's SRAM."""

    moved_bytes: int = figure("by the mapping, all chips together", heading="DRAM\nbytes")
    proved_bytes: int = figure(
        "that every run moves: inputs and parameters that are read, outputs; each once", heading="proved least\nbytes"
    )
    least_bytes: int | None = figure(
        "of the best known plan with this SRAM: tilings of operators by divisors of their extents, and "
        "tensors that stay on the chip; `null` if none is known: not even single words of an operator fit, or an "
        "operator has too many tilings",
        heading="best seen\nbytes",
    )
    least_is_exact: bool = figure(
        "whether no order of the operators and no choice of tensors that stay moves less in that model"
    )
    buffer_bytes: int | None = figure("SRAM of all chips; `null`: unlimited")
    ratio: float | None = figure(
        "`moved_bytes / least_bytes`; below 1 where operators stream into each other by parts",
        heading="times\nthe plan",
        cell=".2f",
        of=lambda traffic: traffic.moved_bytes / traffic.least_bytes if traffic.least_bytes else None,
    )
    schedule_ratio: float | None = figure(
        "`schedule.io_bytes / proved_bytes`: what buffers of the schedule take and give, on the chip or not",
        heading="I/O, times\nproved",
        cell=".2f",
    )
    operators: tuple[OperatorTrafficSummary, ...] = figure(
        "by excess, largest first; their figures add up to those of all"
    )
