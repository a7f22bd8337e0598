"""The parts of the report on what separates a schedule from the ideal, operator by operator, and on automatic choices.

The latter say what it is, what it brings, and what each operator could be. What operators are lowered to: those alike
together, in the report, and as a sentence with the most work first.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.frontend import ChosenExpansion
from dfcompile.report.figure import figure, record
from dfcompile.scheduler.operator_times import OperatorTime, shared

NO_CHOICE: Final = "no operator has more than one expansion"
_LITTLE: Final = 5e-3  # of the work: those below are told together


@record()
class LoweringSummary:
    """Operators that are lowered by the same expansions."""

    operators: tuple[str, ...] = figure("the user's operators, in the order of the model", least=1)
    expansions: Mapping[str, str] = figure(
        "type of the operator, or of a canonical operator in it → expansion, for those that offer a choice"
    )
    work_cycles: int = figure("of all their tasks")


def lowering_summaries(offered: Sequence[ChosenExpansion], dag: CanonicalDag) -> tuple[LoweringSummary, ...]:
    """Return the operators that offer a choice, grouped by what they are lowered to, most work first.

    Args:
        offered: the expansions that were chosen among several.
        dag: what they became.
    """
    taken: dict[str, dict[str, dict[str, None]]] = {}
    for one in offered:
        taken.setdefault(one.origin, {}).setdefault(one.op_type, {})[one.name] = None
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for origin, names in taken.items():
        groups.setdefault(tuple((op_type, "+".join(found)) for op_type, found in names.items()), []).append(origin)
    work = _work_by_origin(dag)
    found = (
        LoweringSummary(tuple(origins), MappingProxyType(dict(key)), sum(work.get(origin, 0) for origin in origins))
        for key, origins in groups.items()
    )
    return tuple(sorted(found, key=lambda each: -each.work_cycles))


def _work_by_origin(dag: CanonicalDag) -> dict[str, int]:
    tasks = np.flatnonzero(dag.is_computational)
    by_scope = np.zeros(len(dag.scopes), dtype=np.int64)
    np.add.at(by_scope, dag.node_scope[tasks], dag.work[tasks])
    work: dict[str, int] = {}
    for scope, cycles in zip(dag.scopes, by_scope.tolist(), strict=True):
        work[scope.origin] = work.get(scope.origin, 0) + cycles
    return work


class Lowered(Struct, frozen=True):
    """A `LoweringSummary`, or what is read of one in a report: operators, expansions, and their part of all work."""

    operators: Sequence[str]
    expansions: Mapping[str, str]
    share: float

    @property
    def expansions_text(self) -> str:
        """As rules of ``--expand``."""
        return " ".join(f"{op_type}={name}" for op_type, name in self.expansions.items())

    @property
    def words(self) -> str:
        """What it is and of which operators: ``Conv=direct in conv1 and 3 more (83 % of the work)``."""
        return f"{self.expansions_text} in {_listed(self.operators)}"


def lowered_texts(lowered: Sequence[Lowered]) -> Iterator[str]:
    """Yield sentences on a lowering, each with one more of its groups, from the first alone to all that matter.

    Args:
        lowered: most work first.
    """
    if not lowered:
        yield NO_CHOICE
    told: list[str] = []
    for at, one in enumerate(lowered):
        if at and one.share < _LITTLE:
            return
        told.append(f"{one.words} ({_percent(one.share)}{' of the work' if not at else ''})")
        others = lowered[at + 1 :]
        count = sum(len(other.operators) for other in others)
        more = f"{count:,} other operator{'s' if count > 1 else ''} ({_percent(sum(other.share for other in others))})"
        yield "; ".join((*told, *([more] if others else [])))


def _listed(names: Sequence[str]) -> str:
    match len(names):
        case 1:
            return names[0]
        case 2:
            return " and ".join(names)
        case _:
            return f"{names[0]} and {len(names) - 1:,} more"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= _LITTLE or not share else "<1 %"


_NAMED = 3  # operators in a sentence; JSON has all


@record()
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


@record("options")
class OptionSummary:
    """A way to lower operators of one shape, and to divide their scopes into tasks."""

    operators: tuple[str, ...] = figure("the user's operators, all of one shape", least=1)
    expansions: Mapping[str, str] = figure(
        "type of the operator, or of a canonical operator in it → expansion, for those that offer a choice"
    )
    pieces: int | None = figure(
        "into which each scope is divided at most; `null`: as its expansion declares",
        heading="pieces",
        words=((None, "declared"),),
    )
    rest: int | None = figure(
        "the same of scopes with less than half the iterations of its largest; `null`: as of the others",
        heading="rest",
        words=((None, ""),),
        hidden=None,
    )
    tasks: int = figure("of one of the operators", unit="tasks", heading="tasks")
    work_cycles: int = figure("of them", heading="work\ncycles")
    least_cycles: int = figure(
        "that no schedule of the operator alone falls below", heading="at least\ncycles", of="bound_cycles"
    )
    alone_cycles: int = figure(
        "that it takes, by an estimate, if everything it reads is there", heading="alone\ncycles", of="cycles"
    )
    is_chosen: bool = figure("whether this is the one that the automatic choice has")


@record()
class RivalsSummary:
    """Uniform choices: each operator type one expansion, all scopes one granularity."""

    scheduled: int = figure("whose schedules were compared with that of the automatic choice", unit="choices")
    excluded: int = figure("of which it is proved that they are no better", unit="choices")
    estimated: int = figure(
        "that were left to their estimates, or to those of their operators: more would have taken too long",
        unit="choices",
    )
    is_quick: bool = figure("whether few may be looked at, as by `--expand quick` and without `--expand`")


@record()
class AutomaticSummary:
    """Expansions and granularity as they are chosen for this number of PEs, or would be by `--expand auto`."""

    is_taken: bool = figure("whether the model is lowered so; else this is what it would bring")
    expand: tuple[str, ...] = figure(
        "values of `--expand` that give the same expansions; `published` of a model without a choice"
    )
    granularity: tuple[str, ...] = figure("values of `--granularity` that give the same tasks")
    estimated_cycles: int = figure("its makespan, estimated")
    published_cycles: int | None = figure(
        "that of the published expansions with the tasks that they declare, or that `--granularity` says, "
        "estimated; `null` if these are too many"
    )
    options: tuple[OptionSummary, ...] = figure("what was looked at for each operator, those of one shape together")
    options_excluded: int = figure(
        "of operators that are not listed: what they take at least is no less than what one that is listed takes, in "
        "tasks, cycles and DRAM, or with twice as many tasks less by at most 1 % of each",
        unit="options",
    )
    rivals: RivalsSummary | None = figure("what it was compared with; absent where it is not taken", default=None)


def best_options(options: Sequence[OptionSummary]) -> tuple[OptionSummary, ...]:
    """Return of operators with several expansions the best granularity of each, and the one that was chosen."""
    alike: dict[tuple[tuple[str, ...], str], list[OptionSummary]] = {}
    for option in options:
        alike.setdefault((option.operators, str(dict(option.expansions))), []).append(option)
    lowerings = Counter(operators for operators, _ in alike)
    return tuple(
        min(found, key=lambda option: (not option.is_chosen, option.alone_cycles, option.tasks))
        for (operators, _), found in alike.items()
        if lowerings[operators] > 1
    )
