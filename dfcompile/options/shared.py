"""Options that several commands have."""

from collections.abc import Iterable
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dfcompile.errors import UserError
from dfcompile.options.numbers import count, counts, parts
from dfcompile.options.option import Read, option, table
from dfcompile.options.readers import Names, as_given, dims, fixed_inputs, one_of, path, shapes, text, word, yes_or_no
from dfcompile.options.words import Effort

ROW_FORMATS = ("table", "json", "csv")
# Of a report on a model, below its first screen.
SECTIONS = ("schedule", "bounds", "operators", "mapping", "time", "traffic", "configurations", "assumptions")
ALL = "all"


def word_option(said: str, known: Iterable[str], *, default: str | None = None, **more: Any) -> Any:
    """Return the option of one of a few words."""
    return option(word(known), said, default=default, choices=tuple(known), **more)


def flag_option(said: str, **more: Any) -> Any:
    """Return the option that is set or not."""
    return option(yes_or_no, said, default=False, is_flag=True, **more)


def list_option(read: Read, said: str, metavar: str, *, default: object = (), **more: Any) -> Any:
    """Return the option that may be given several times."""
    return option(read, said, metavar=metavar, default=default, is_repeatable=True, **more)


def system_option(said: str, more: str = "") -> Any:
    """Return the option of the machine."""
    return option(text, said, more=more, default=None, metavar="FILE|NAME", complete="system")


def _nothing() -> MappingProxyType[str, object]:
    return MappingProxyType({})


def shapes_option(said: str = "Size of a model input that the model leaves open.") -> Any:
    """Return the option of the shapes of inputs."""
    return option(
        shapes,
        said,
        make=_nothing,
        flags=("--shape",),
        metavar="INPUT=SIZExSIZE…",
        is_repeatable=True,
        stage="reading",
    )


def dims_option(said: str = "Size of a symbolic dimension of the inputs.") -> Any:
    """Return the option of the sizes of symbolic dimensions."""
    return option(
        dims,
        said,
        more="Wherever inputs have it; 0 for a cache that is [empty](models.md#empty-caches-and-fixed-inputs).",
        make=_nothing,
        flags=("--dim",),
        metavar="NAME=SIZE",
        is_repeatable=True,
        stage="reading",
    )


def fixed_inputs_option() -> Any:
    """Return the option of the values of inputs."""
    return option(
        fixed_inputs,
        "Value that an input has in every run, such as use_cache=false; one value stands for all elements.",
        more="Elements in row order; see [fixed inputs](models.md#empty-caches-and-fixed-inputs).",
        make=_nothing,
        flags=("--input",),
        metavar="INPUT=VALUE[,VALUE…]",
        is_repeatable=True,
        stage="reading",
    )


def pes_option() -> Any:
    """Return the option of the numbers of processing elements."""
    return option(counts, "Numbers of processing elements; one result each.", metavar="P[,P…]", is_repeatable=True)


def barrier_option() -> Any:
    """Return the option of barriers between blocks."""
    return option(
        as_given,
        "Whether a spatial block waits for the one before; else as the partitioner has it.",
        more="`best` goes without barriers, the others with them.",
        default=None,
        flags=("--barrier/--no-barrier",),
        is_flag=True,
        stage="scheduling",
    )


def max_fifo_option() -> Any:
    """Return the option of the largest FIFO."""
    return option(
        count,
        "No FIFO holds more than N elements.",
        more="For the mapping, in words of a core; [more](#schedules-of-a-canonical-dag).",
        default=None,
        metavar="N",
        stage="scheduling",
    )


def solver_option() -> Any:
    """Return the option of the solver for configurations."""
    return option(
        text,
        "For the configurations: dp, cbc, highs, assignment-cbc, assignment-highs, intervals or a plug-in's.",
        more="All but `intervals` prove the optimum; a [plug-in's](plugins/solvers.md) as it says.",
        default="dp",
        metavar="NAME",
        complete="solver",
    )


def effort_option(default: Effort) -> Any:
    """Return the option of how much a partitioner tries."""
    return word_option(
        "How much is tried for a short schedule.",
        Effort,
        more="In tries, never in seconds: [what](scheduling.md#partitioners).",
        default=default,
        stage="scheduling",
    )


def html_option() -> Any:
    """Return the option of the page."""
    return file_option("Write the report as a page with charts and tables: one file that needs no network.")


def file_option(said: str, **more: Any) -> Any:
    """Return the option of a file."""
    return option(path, said, default=None, metavar="FILE", is_path=True, **more)


def output_option() -> Any:
    """Return the option of the file that the report is written to instead of standard output."""
    return option(
        _target,
        "Write there, not to stdout (-).",
        default=None,
        flags=("-o", "--output"),
        metavar="FILE",
        is_path=True,
    )


def verbose_option(said: str = "List the assumptions in the table.") -> Any:
    """Return the option of a longer table."""
    return flag_option(said, flags=("-v", "--verbose"))


def _sections(where: str, given: Names) -> tuple[str, ...]:
    found = [part for each in parts(given) for part in (SECTIONS if each.strip() == ALL else (each.strip(),))]
    return tuple(dict.fromkeys(one_of(where, each, SECTIONS) for each in found))


def _target(_where: str, given: Path) -> Path | None:
    return None if given == Path("-") else given


def format_option(**said: Any) -> Any:
    """Return the option of the form of a report that plug-ins add to."""
    return option(
        text,
        "Of the report: table, json, csv or a plug-in's.",
        default="table",
        metavar="NAME",
        complete="format",
        **said,
    )


@table
class Outputs:
    """Where a report is written, and how."""

    html: Path | None = html_option()
    format: str = format_option(more="See [report format](report-format.md) and [plug-ins](plugins/report-formats.md).")
    show: tuple[str, ...] = list_option(
        _sections,
        f"More tables below the first screen: {', '.join(SECTIONS)}, or all.",
        "NAME[,NAME…]",
        complete=(*SECTIONS, ALL),
    )
    verbose: bool = verbose_option("Everything, as --show all.")
    output: Path | None = output_option()


@table
class RowOutputs:
    """Where rows are written, and how."""

    html: Path | None = html_option()
    format: str = option(text, "table, json or csv.", default="table", metavar="NAME", complete=ROW_FORMATS)
    verbose: bool = verbose_option()
    output: Path | None = output_option()


@table
class Pictures:
    """Pictures of one schedule."""

    trace: Path | None = file_option(
        "Write the one schedule as a trace for Perfetto or chrome://tracing.",
        more="For one number of PEs and one choice of expansions, see [below](#pictures-of-a-schedule).",
    )
    gantt: Path | None = file_option("Draw the one schedule as an SVG.", more="Likewise.")

    @property
    def targets(self) -> dict[str, Path]:
        """The files that are asked for, by option."""
        asked = {"--trace": self.trace, "--gantt": self.gantt}
        return {name: target for name, target in asked.items() if target is not None}

    def check_one(self, schedules: int) -> None:
        """Check that pictures of one schedule are not asked for several.

        Raises:
            UserError: there are several.
        """
        for name in self.targets:
            if schedules > 1:
                raise UserError(
                    f"{name}: found {schedules} schedules against one (give one --pes and one of each other choice)"
                )
