"""The options of ``dfcompile explore``."""

from collections.abc import Mapping
from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.options import shared
from dfcompile.options.numbers import counts, within
from dfcompile.options.option import option, table
from dfcompile.options.readers import expansions, joined, path, text, texts
from dfcompile.options.words import DEFAULT_TRIES, Expand, FixedInput

OBJECTIVES = ("makespan", "io", "area", "energy", "cost")


MOST_JOBS = 1024
MOST_TRIES = 10**6


@table
class ExploreOptions:
    """An exploration."""

    model: Path = option(path, "A file.", is_argument=True, is_path=True)
    pes: tuple[int, ...] = option(counts, "Numbers of processing elements.", metavar="P[,P…]", is_repeatable=True)
    on_chip_memory: str = option(
        joined,
        "Amounts of on-chip memory, in kB or with a unit: 256,1024,8MB.",
        more="Of 1,024 bytes.",
        metavar="M[,M…]",
        is_repeatable=True,
    )
    objective: str = shared.list_option(
        joined,
        "What is to be small: makespan, io, area, energy, cost.",
        "NAME[,NAME…]",
        default="makespan,io,area",
        complete=OBJECTIVES,
    )
    expand: Expand = shared.list_option(
        expansions,
        "What is chosen from; what no rule names is as by default. Without a rule everything is chosen from all its "
        "expansions.",
        "[ORIGIN:]OP=NAME[,NAME…]",
        more="By [type, name or pattern](choosing.md).",
        default=Expand(),
        complete="expansion",
    )
    granularity: tuple[str, ...] = shared.list_option(
        texts,
        "Of the tasks: declared, pieces=N, max-tasks=N, split=N; several are compared.",
        "NAME",
        more="Where only tasks as declared are looked at, a hint says if the fastest points are estimated to take 10 % "
        "less in P or 4 P pieces.",
        default=("declared",),
    )
    shapes: Mapping[str, tuple[int, ...]] = shared.shapes_option()
    dims: Mapping[str, int] = shared.dims_option()
    fixed_inputs: Mapping[str, FixedInput] = shared.fixed_inputs_option()
    system: str | None = shared.system_option("The machine whose power and prices count.")
    partition: str = option(text, "How spatial blocks are filled.", default="sb-rlx", metavar="NAME")
    tries: int = option(
        within(1, MOST_TRIES),
        "Schedules that are made at most; large ones count as several.",
        more="One of 8,000 tasks or more does. Never a time: the same question has the same answer.",
        default=DEFAULT_TRIES,
        metavar="N",
    )
    jobs: int | None = option(
        within(1, MOST_JOBS),
        "Processes on this machine. Without, one per processor.",
        more="The answer does not depend on it.",
        default=None,
        metavar="N",
    )
    cluster: str | None = option(
        text,
        "Run on a Dask cluster, such as tcp://host:8786.",
        more="With `pip install 'dfcompile[cluster]'`.",
        default=None,
        metavar="ADDRESS",
    )
    cache: Path | None = shared.file_option(
        "Results that were found before. Without, in the user's cache folder.",
        more="That is `~/.cache/dfcompile/exploration.cache`.",
    )

    def __post_init__(self) -> None:
        """Check what is asked.

        Raises:
            UserError: what is chosen is said to be chosen.
        """
        if self.expand.chooses:
            raise UserError(
                f"--expand: found {self.expand.rest}, against rules alone: an exploration chooses in any case"
            )
