"""The part of the report on the automatic choice: what it is, what it brings, what each operator could be."""

from collections import Counter
from collections.abc import Mapping, Sequence

from dfcompile.report.figure import figure, record, shown_in


@record
@shown_in("options")
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
    tasks: int = figure("of one of the operators", unit="tasks", heading="tasks")
    work_cycles: int = figure("of them", heading="work\ncycles")
    least_cycles: int = figure(
        "that no schedule of the operator alone falls below", heading="at least\ncycles", of="bound_cycles"
    )
    alone_cycles: int = figure(
        "that it takes, by an estimate, if everything it reads is there", heading="alone\ncycles", of="cycles"
    )
    is_chosen: bool = figure("whether this is the one that the automatic choice has")


@record
class RivalsSummary:
    """Uniform choices: each operator type one expansion, all scopes one granularity."""

    scheduled: int = figure("whose schedules were compared with that of the automatic choice", unit="choices")
    excluded: int = figure("of which it is proved that they are no better", unit="choices")
    estimated: int = figure(
        "that were left to their estimates, or to those of their operators: more would have taken too long",
        unit="choices",
    )
    is_quick: bool = figure("whether few may be looked at, as by `--expand quick` and without `--expand`")


@record
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
