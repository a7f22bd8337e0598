"""The part of the report on the automatic choice: what it is, what it brings, what each operator could be."""

from collections.abc import Mapping, Sequence

from dfcompile.report.figure import figure, record


@record
class OptionSummary:
    """A way to lower operators of one shape, and to divide their scopes into tasks."""

    operators: tuple[str, ...] = figure(meaning="the user's operators, all of one shape", least=1)
    expansions: Mapping[str, str] = figure(
        meaning="type of the operator, or of a canonical operator in it → expansion, for those that offer a choice"
    )
    pieces: int | None = figure(
        meaning="into which each scope is divided at most; `null`: as its expansion declares",
        heading="pieces",
        table="options",
        words=((None, "declared"),),
    )
    tasks: int = figure(unit="tasks", meaning="of one of the operators", heading="tasks", table="options")
    work_cycles: int = figure(unit="cycles", meaning="of them", heading="work\ncycles", table="options")
    least_cycles: int = figure(
        unit="cycles",
        meaning="that no schedule of the operator alone falls below",
        heading="at least\ncycles",
        table="options",
    )
    alone_cycles: int = figure(
        unit="cycles",
        meaning="that it takes, by an estimate, if everything it reads is there",
        heading="alone\ncycles",
        table="options",
    )
    is_chosen: bool = figure(meaning="whether this is the one that the automatic choice has")


@record
class RivalsSummary:
    """Uniform choices: each operator type one expansion, all scopes one granularity."""

    scheduled: int = figure(unit="choices", meaning="whose schedules were compared with that of the automatic choice")
    excluded: int = figure(unit="choices", meaning="of which it is proved that they are no better")
    estimated: int = figure(
        unit="choices",
        meaning="that were left to their estimates, or to those of their operators: more would have taken too long",
    )
    is_quick: bool = figure(meaning="whether few may be looked at, as by `--expand quick` and without `--expand`")


@record
class AutomaticSummary:
    """Expansions and granularity as they are chosen for this number of PEs, or would be by `--expand auto`."""

    is_taken: bool = figure(meaning="whether the model is lowered so; else this is what it would bring")
    expand: tuple[str, ...] = figure(
        meaning="values of `--expand` that give the same expansions; `published` of a model without a choice"
    )
    granularity: tuple[str, ...] = figure(meaning="values of `--granularity` that give the same tasks")
    estimated_cycles: int = figure(unit="cycles", meaning="its makespan, estimated")
    published_cycles: int | None = figure(
        unit="cycles",
        meaning="that of the published expansions with the tasks that they declare, or that `--granularity` says, "
        "estimated; `null` if these are too many",
    )
    options: tuple[OptionSummary, ...] = figure(
        meaning="what was looked at for each operator, those of one shape together"
    )
    rivals: RivalsSummary | None = figure(
        meaning="what it was compared with; absent where it is not taken", is_optional=True, default=None
    )


def best_options(options: Sequence[OptionSummary]) -> tuple[OptionSummary, ...]:
    """Return of operators with several expansions the best granularity of each, and the one that was chosen."""
    several = {
        option.operators
        for option in options
        if any(other.operators == option.operators and other.expansions != option.expansions for other in options)
    }
    best: dict[tuple[tuple[str, ...], str], OptionSummary] = {}
    for option in options:
        key = option.operators, str(dict(option.expansions))
        if option.operators not in several:
            continue
        rank = (not option.is_chosen, option.alone_cycles, option.tasks)
        if key not in best or rank < (not best[key].is_chosen, best[key].alone_cycles, best[key].tasks):
            best[key] = option
    return tuple(best.values())
