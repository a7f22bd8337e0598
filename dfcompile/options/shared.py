"""Options that several commands have."""

from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.options.numbers import parts
from dfcompile.options.option import first, inputs, machine, output, schedules, table
from dfcompile.options.readers import Names, file_or_name, machine_parts, one_of, word
from dfcompile.options.words import Timing
from dfcompile.records import replace

ROW_FORMATS = ("table", "json", "csv")
# Of a report on a model, below its first screen.
SECTIONS = ("schedule", "bounds", "operators", "mapping", "time", "traffic", "configurations", "assumptions")
ALL = "all"


def _sections(where: str, given: Names) -> tuple[str, ...]:
    found = [part for each in parts(given) for part in (SECTIONS if each.strip() == ALL else (each.strip(),))]
    return tuple(dict.fromkeys(one_of(where, each, SECTIONS) for each in found))


def _target(_where: str, given: Path) -> Path | None:
    return None if given == Path("-") else given


# Of models.
SHAPES = inputs(
    "Size of a model input that the model leaves open.", flags=("--shape",), metavar="INPUT=SIZExSIZE…", stage="reading"
)
DIMS = inputs(
    "Size of a dimension that the model leaves open, by its name, such as batch=8.",
    more="It holds wherever an input has the dimension; 0 is for a cache that is "
    "[empty](models.md#empty-caches-and-fixed-inputs).",
    flags=("--dim",),
    metavar="NAME=SIZE",
    stage="reading",
)
FIXED_INPUTS = inputs(
    "Value of a model input that is the same in every run, such as use_cache=false. One value fills the whole input.",
    more="Else list all elements in row order; see [fixed inputs](models.md#empty-caches-and-fixed-inputs).",
    flags=("--input",),
    metavar="INPUT=VALUE[,VALUE…]",
    stage="reading",
)
# Of machines and schedules.
PES = first("Numbers of processing elements (PEs); one result for each.", metavar="P[,P…]")
SYSTEM = first(
    "Machine: a name that 'dfcompile systems' lists, or a system file.",
    read=file_or_name,
    metavar="FILE|NAME",
    complete="system",
)
BARRIER = schedules(
    "Whether each spatial block waits until the one before it has ended. Without, the partitioner decides.",
    more="`best` goes without barriers, the others with them.",
    flags=("--barrier/--no-barrier",),
    stage="scheduling",
)
MAX_FIFO = schedules(
    "Largest size of a FIFO, in elements.",
    more="For the mapping, in words of a core; [more](#schedules-of-a-canonical-dag).",
    metavar="N",
    stage="scheduling",
)
WHAT_IF = schedules(
    "What each schedule would take with other parts, alone and together: fifo=registered, latency=N, pipeline=N, "
    "ports=N.",
    more="As it is, with the same FIFOs, and made anew; see [what parts cost](hardware.md#what-parts-cost).",
    read=machine_parts,
    metavar="PART=VALUE[,PART=VALUE…]",
)
PARTITION = schedules(
    "How to fill spatial blocks (groups of tasks that share the chip): best, sb-rlx, sb-lts, work-ordered, or one from "
    "a plug-in.",
    default="best",
    metavar="NAME",
    complete=("best", "sb-rlx", "sb-lts", "work-ordered"),
    stage="scheduling",
)
TIMING = schedules(
    "Take times from a replay of the schedule with its FIFOs, or estimate them from mean intervals.",
    default=Timing.EXACT,
    stage="scheduling",
)
EFFORT = schedules(
    "How long to look for a shorter schedule.",
    more="Counted in tries, never in seconds: [how many](scheduling.md#partitioners).",
    stage="scheduling",
)
SOLVER = machine(
    "How to group kernels into configurations: dp, cbc, highs, intervals, or one from a plug-in.",
    more="All but `intervals` prove the optimum; a [plug-in](plugins/solvers.md) says whether it does.",
    default="dp",
    metavar="NAME",
    complete="solver",
)
# Of outputs.
HTML = output("Write the report as a page with charts and tables. It is one file and needs no network.")
OUTPUT = output("File to write to instead of standard output (-).", read=_target, flags=("-o", "--output"))
VERBOSE = output("Also list the assumptions.", flags=("-v", "--verbose"))
ROW_FORMAT = output(
    "Format of the report: table, json or csv.",
    read=word(ROW_FORMATS),
    default="table",
    metavar="NAME",
    complete=ROW_FORMATS,
)


@table
class Outputs:
    """Where a report is written, and how."""

    html: Path | None = HTML
    format: str = replace(ROW_FORMAT, more="See [report format](report-format.md).")
    show: tuple[str, ...] = first(
        f"Tables to add: {', '.join(SECTIONS)}, or all.",
        read=_sections,
        default=(),
        metavar="NAME[,NAME…]",
        complete=(*SECTIONS, ALL),
    )
    verbose: bool = replace(VERBOSE, help="Show all tables, like --show all.")
    output: Path | None = OUTPUT


@table
class RowOutputs:
    """Where rows are written, and how."""

    html: Path | None = HTML
    format: str = ROW_FORMAT
    verbose: bool = VERBOSE
    output: Path | None = OUTPUT


@table
class Pictures:
    """Pictures of one schedule."""

    trace: Path | None = output(
        "Write the schedule as a trace for Perfetto or chrome://tracing.",
        more="Takes one number of PEs and one choice of expansions; see [below](#pictures-of-a-schedule).",
    )
    gantt: Path | None = output("Draw the schedule as an SVG (Gantt chart).", more="Likewise.")

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


def emissions(values: str, kinds: tuple[str, ...], more: str) -> tuple[tuple[str, Path], ...]:
    """Return the option that writes values of stages, of some kinds, to folders; ``more`` says what each kind is."""
    listed = ", ".join(kinds)
    option: tuple[tuple[str, Path], ...] = output(
        f"Write {values} to a folder; KIND is {'one of ' if len(kinds) > 1 else ''}{listed}. The folder is new, empty "
        "or an earlier --emit of the same kind, which is replaced.",
        more=more,
        default=(),
        flags=("--emit",),
        metavar="KIND DIR",
        choices=kinds,
        is_pair=True,
    )
    return option
