"""The part of the report on traffic: what a mapping moves beside the least (docs/bounds.md)."""

from dfcompile.report.figure import figure, record, shown_in


@record
class OperatorTrafficSummary:
    """What an operator moves in a mapping, beside its part of the least."""

    operator: str = figure("name; of operators that run as its result is made too")
    moved_bytes: int = figure("read from DRAM first for it, and its results written to DRAM")
    least_bytes: int = figure("in the plan that `least_bytes` of all is of")
    excess_bytes: int = figure("the difference; negative where it moves less than in that plan", least=None)


@record
@shown_in("traffic")
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
    )
    schedule_ratio: float | None = figure(
        "`schedule.io_bytes / proved_bytes`: what buffers of the schedule take and give, on the chip or not",
        heading="I/O, times\nproved",
        cell=".2f",
    )
    operators: tuple[OperatorTrafficSummary, ...] = figure(
        "by excess, largest first; their figures add up to those of all"
    )
