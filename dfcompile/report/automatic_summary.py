"""Sums up an automatic choice as a part of the report."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.choosing import OperatorOptions, Selection
from dfcompile.expansion_names import PUBLISHED
from dfcompile.report.automatic_figures import AutomaticSummary, OptionSummary, RivalsSummary
from dfcompile.report.filled import filled


def automatic_summary(selection: Selection, makespan_cycles: int | None) -> AutomaticSummary:
    """Return what was chosen, what it was compared with, and what else each operator could be.

    Args:
        selection: the choice.
        makespan_cycles: of the schedule that was made of it, if it was taken.
    """
    sketch, default = selection.sketch, selection.default
    taken = selection.expansions
    return AutomaticSummary(
        is_taken=selection.is_taken,
        # Without a rule, the command that repeats the choice would choose.
        expand=tuple(_expand(taken)) or (PUBLISHED,) * selection.is_taken,
        granularity=_granularity(sketch.candidate.granularity),
        estimated_cycles=sketch.estimate.cycles,
        published_cycles=None if default is None else default.estimate.cycles,
        rivals=_rivals(selection, makespan_cycles) if selection.is_taken else None,
        options=tuple(option for each in selection.operators for option in _options(each, taken, selection)),
    )


def _rivals(selection: Selection, makespan_cycles: int | None) -> RivalsSummary:
    """Count the uniform choices; of those left, a bound may exclude some beside the schedule that was made."""
    scheduled = sum(rival.score is not None for rival in selection.rivals)
    excluded = sum(
        rival.score is None
        and (
            rival.is_excluded or (makespan_cycles is not None and rival.sketch.estimate.bound_cycles >= makespan_cycles)
        )
        for rival in selection.rivals
    )
    estimated = selection.unseen + len(selection.rivals) - scheduled - excluded
    return RivalsSummary(scheduled, excluded, estimated, is_quick=selection.limits.is_quick)


def _expand(taken: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a rule for the most frequent expansion of each type, then one for each operator that has another."""
    by_type: dict[str, dict[str, list[str]]] = {}
    for origin, names in taken.items():
        for op_type, name in names.items():
            by_type.setdefault(op_type, {}).setdefault(name, []).append(origin)
    usual = {op_type: max(names, key=lambda name: len(names[name])) for op_type, names in by_type.items()}
    for op_type, name in usual.items():
        yield f"{op_type}={name}"
    for op_type, found in by_type.items():
        for name, origins in found.items():
            if name != usual[op_type]:
                yield from (f"{origin}:{op_type}={name}" for origin in origins)


def _granularity(found: Granularity) -> tuple[str, ...]:
    every = str(Granularity(found.max_tasks, found.split, found.pieces))
    single = (f"{origin}:{'declared' if count is None else f'pieces={count}'}" for origin, count in found.own)
    return (every, *single)


def _options(
    operators: OperatorOptions, taken: Mapping[str, Mapping[str, str]], selection: Selection
) -> Iterator[OptionSummary]:
    origin = operators.origins[0]
    pieces = selection.sketch.candidate.granularity.pieces_of(origin)
    for option in operators.known:
        expansions = dict(option.expansions)
        yield filled(
            OptionSummary,
            option,
            option.alone,
            operators=operators.origins,
            expansions=MappingProxyType(expansions),
            is_chosen=option.pieces == pieces and expansions == dict(taken.get(origin, {})),
        )
