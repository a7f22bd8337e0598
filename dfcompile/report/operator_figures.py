"""The part of the report on what separates a schedule from the ideal, operator by operator."""

from collections.abc import Mapping, Sequence

from dfcompile.report.figure import figure, record
from dfcompile.scheduler.operator_times import OperatorTime, shared

_NAMED = 3  # operators in a sentence; JSON has all


@record
class OperatorGapSummary:
    """What an operator takes of all PEs together, beside what it would take ideally."""

    operator: str = figure("the user's operator")
    least_work_cycles: int = figure(
        "of one PE, that its tasks work at least, by whichever known expansion, into however many tasks it is divided"
    )
    more_work_cycles: int = figure("of one PE, that its tasks work beyond that")
    waiting_cycles: int = figure("of one PE, in which its tasks have a PE and wait for others")
    idle_cycles: int = figure(
        "of one PE, in which a PE has no task while tasks of the operator run; all tasks that run share it"
    )

    @property
    def gap_cycles(self) -> int:
        """All but the least work, in cycles of one PE."""
        return self.more_work_cycles + self.waiting_cycles + self.idle_cycles


def operator_gaps(times: Sequence[OperatorTime], least_work: Mapping[str, int]) -> tuple[OperatorGapSummary, ...]:
    """Return the gaps of all operators that take time or work."""
    taken = {origin: OperatorTime(origin, 0, 0, 0) for origin in least_work}
    taken |= {time.origin: time for time in times}
    found = []
    for origin, time in taken.items():
        least = least_work.get(origin, 0)
        more = time.work_cycles - least
        found.append(OperatorGapSummary(origin, least, more, time.waiting_cycles, time.idle_cycles))
    return tuple(gap for gap in found if gap.least_work_cycles or gap.gap_cycles)


def gap_note(where: str, pes: int, makespan: int, gaps: Sequence[OperatorGapSummary]) -> str:
    """Return which operators separate a makespan from the ideal, in whole cycles that add up.

    Args:
        where: what tells the schedule from others.
        pes: number of processing elements P.
        makespan: in cycles.
        gaps: of all operators.
    """
    total = makespan * pes - sum(gap.least_work_cycles for gap in gaps)
    above = total // pes
    worst = sorted(gaps, key=lambda gap: -gap.gap_cycles)
    named, others = worst[:_NAMED], worst[_NAMED:]
    cycles = shared(above, [*(gap.gap_cycles for gap in named), sum(gap.gap_cycles for gap in others)])
    texts = [f"{gap.operator} {count:,}{_why(gap, count)}" for gap, count in zip(named, cycles, strict=False) if count]
    if others:
        texts.append(f"{len(others)} {'other' if len(others) == 1 else 'others'} {cycles[-1]:,}")
    said = f"on {where} {above:,} of {makespan:,} cycles are above the ideal of {makespan - above:,}"
    return f"{said}: {', '.join(texts)}" if above else said


def _why(gap: OperatorGapSummary, cycles: int) -> str:
    parts = (("idle PEs", gap.idle_cycles), ("waiting", gap.waiting_cycles), ("more work", gap.more_work_cycles))
    counts = shared(cycles, [part for _, part in parts])
    said = [f"{name} {count:,}" for (name, _), count in zip(parts, counts, strict=True) if count]
    return f" ({', '.join(said)})" if said else ""
