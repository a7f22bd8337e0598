"""The options of ``dfcompile schedule``, ``explore``, ``bounds``, ``compare`` and ``SETUP``."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.options import shared
from dfcompile.options.numbers import real, sizes, slack, within
from dfcompile.options.option import Group, option, table
from dfcompile.options.readers import fifos, joined, names
from dfcompile.options.words import DEFAULT_TRIES, Effort, Expand, Fifos, FixedInput, Objective, Timing
from dfcompile.records import replace

PARTITIONS = ("best", "sb-rlx", "sb-lts", "work-ordered")
OBJECTIVES = ("makespan", "io", "area", "energy", "cost")
SHARDING_OBJECTIVES = ("bytes", "time")
MOST_JOBS = 1024
MOST_TRIES = 10**6
ROWS = ("operator", "model")
_SHAPES = ("--gemm", "--bmm", "--conv", "--chain", "--attention")
FACTOR = "a number of 1 or more, such as 1.1"


@table
class DagOptions:
    """Schedules of a canonical DAG."""

    dag: Path = option("The graph, or its file.", is_argument=True)
    pes: tuple[int, ...] = shared.PES
    partition: tuple[str, ...] = option(
        "How spatial blocks are filled: best, sb-rlx, sb-lts, work-ordered or a plug-in's; several are compared, and "
        "the best is marked.",
        read=names,
        default=("best",),
        metavar="NAME[,NAME…]",
        complete=PARTITIONS,
        group=Group.FIRST,
    )
    effort: Effort = replace(shared.EFFORT, default=Effort.DEFAULT)
    barrier: bool | None = shared.BARRIER
    timing: Timing = option(
        "Times of a replay with the FIFOs, or from mean intervals.",
        default=Timing.EXACT,
        stage="scheduling",
        group=Group.SCHEDULE,
    )
    fifo: Fifos | None = option(
        "Sizes of FIFOs: the elements in flight, which delays nothing; the published rule; the smallest that delay "
        "nothing; or N elements. Without, in-flight, and with --timing steady rule.",
        read=fifos,
        metavar="in-flight|rule|minimal|N",
        group=Group.SCHEDULE,
    )
    max_fifo: int | None = shared.MAX_FIFO
    objective: Objective = option(
        "Which schedule is chosen: the shortest; or of those that take little more the one with the smallest FIFOs.",
        group=Group.SCHEDULE,
    )
    slack: Fraction | None = option(
        "With --objective fifo, how much more it may take than the shortest. Without, 10.",
        read=slack,
        metavar="PERCENT",
        group=Group.SCHEDULE,
    )
    front: bool = option(
        "Show all schedules found of which none is both shorter and of smaller FIFOs.", group=Group.SCHEDULE
    )
    simulate: bool = option("Replay the schedules with their FIFOs; say who waits for whom.", group=Group.FIRST)

    def __post_init__(self) -> None:
        """Check what options say together.

        Raises:
            UserError: a slack that nothing has, or a front that is to be one schedule.
        """
        is_fifo = self.objective is Objective.FIFO
        if self.slack is not None and not is_fifo:
            raise UserError(
                f"--slack: found {float(100 * self.slack):g} % without --objective fifo, which alone has a slack"
            )
        if self.front and is_fifo:
            raise UserError(
                "--front: found --objective fifo, which chooses one, against a front, which has all (leave one out)"
            )


@table
class ExploreOptions:
    """An exploration."""

    model: Path = option("A file.", is_argument=True)
    pes: tuple[int, ...] = replace(shared.PES, help="Numbers of processing elements.")
    on_chip_memory: tuple[int, ...] = option(
        "Amounts of on-chip memory, in kB or with a unit: 256,1024,8MB.",
        more="[Units](command-line.md#sizes).",
        read=sizes("kB"),
        metavar="SIZE[,SIZE…]",
        group=Group.FIRST,
    )
    objective: str = option(
        "What is to be small: makespan, io, area, energy, cost.",
        read=joined,
        default="makespan,io,area",
        metavar="NAME[,NAME…]",
        complete=OBJECTIVES,
        is_repeatable=True,
        group=Group.FIRST,
    )
    expand: Expand = option(
        "What is chosen from; what no rule names is as by default. Without a rule everything is chosen from all its "
        "expansions.",
        more="By [type, name or pattern](choosing.md).",
        default=Expand(),
        metavar="[ORIGIN:]OP=NAME[,NAME…]",
        complete="expansion",
        group=Group.FIRST,
    )
    granularity: tuple[str, ...] = option(
        "Of the tasks: declared, pieces=N, max-tasks=N, split=N; several are compared.",
        more="Where only tasks as declared are looked at, a hint says if the fastest points are estimated to take 10 % "
        "less in P or 4 P pieces.",
        default=("declared",),
        metavar="NAME",
        group=Group.LOWERING,
    )
    shapes: Mapping[str, tuple[int, ...]] = shared.SHAPES
    dims: Mapping[str, int] = shared.DIMS
    fixed_inputs: Mapping[str, FixedInput] = shared.FIXED_INPUTS
    system: str | None = replace(shared.SYSTEM, help="The machine whose power and prices count.", group=Group.MACHINE)
    partition: str = option("How spatial blocks are filled.", default="sb-rlx", metavar="NAME", group=Group.SCHEDULE)
    tries: int = option(
        "Schedules that are made at most; large ones count as several.",
        more="One of 8,000 tasks or more does. Never a time: the same question has the same answer.",
        read=within(1, MOST_TRIES),
        default=DEFAULT_TRIES,
        metavar="N",
        group=Group.COUNTING,
    )
    jobs: int | None = option(
        "Processes on this machine. Without, one per processor.",
        more="The answer does not depend on it.",
        read=within(1, MOST_JOBS),
        metavar="N",
        group=Group.COUNTING,
    )
    cluster: str | None = option(
        "Run on a Dask cluster, such as tcp://host:8786.",
        more="With `pip install 'dfcompile[cluster]'`.",
        metavar="ADDRESS",
        group=Group.COUNTING,
    )
    cache: Path | None = option(
        "Results that were found before. Without, in the user's cache folder.",
        more="That is `~/.cache/dfcompile/exploration.cache`.",
        group=Group.COUNTING,
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


@table
class CompareOptions:
    """Reports that are compared, and where what changed is written."""

    reports: tuple[Path, ...] = option("Files.", default=(), metavar="A B…", is_argument=True, is_path=True)
    html: Path | None = shared.HTML
    format: str = option(
        "table, json or csv.", choices=shared.ROW_FORMATS, complete=shared.ROW_FORMATS, group=Group.OUTPUT
    )
    output: Path | None = shared.OUTPUT


@table
class SetupOptions:
    """A set-up file of DFModel that is solved."""

    setup: Path = option("The file, text or binary.", is_argument=True)
    compat: str = option(
        "Repeat flaws of DFModel: all of its newest code (dfmodel), then switches such as network-is-sum, "
        "no-weights-not-read, all-reduce-factor=2; see the manual.",
        default="right",
        metavar="right|dfmodel[,SWITCH…]",
        group=Group.COUNTING,
    )
    solver: str = shared.SOLVER
    sharding_objective: str | None = option(
        "What the sharding minimises: bytes between chips, or time.",
        choices=SHARDING_OBJECTIVES,
        default_text="time; bytes with --compat dfmodel",
        group=Group.MACHINE,
    )


@table
class SetupOutputs(shared.RowOutputs):
    """Where a solved design is written, and how."""

    format: str = shared.FORMAT
    output: Path | None = option(
        "Write the solved file, the report and pictures there. The folder is new, empty or an earlier one.",
        flags=("-o", "--output"),
        metavar="DIR",
        group=Group.OUTPUT,
    )


@table
class BoundsOptions:
    """How little a model or a shape can move."""

    model: Path | None = option("A file.", is_argument=True)
    gemm: tuple[str, ...] = option(
        "A product of matrices instead of a model; several shapes are compared.",
        metavar="M,K,N",
        default=(),
        group=Group.FIRST,
    )
    bmm: tuple[str, ...] = option(
        "Products of H heads: each with operands of its own, or one B for all or for each of G groups.",
        more="Heads of a group share B, as in grouped queries.",
        metavar="H,M,K,N[,shared|,groups=G]",
        default=(),
        group=Group.FIRST,
    )
    conv: tuple[str, ...] = option(
        "A convolution: channels, filters, image of the result, window; then stride, dilation, pad, groups, batch.",
        more="`,stride=N,dilation=N,pad=N,groups=N,batch=N`; images have one, two or three axes.",
        metavar="C,K,PxQ,RxS[,stride=N…]",
        default=(),
        group=Group.FIRST,
    )
    chain: tuple[str, ...] = option(
        "Products one after the other: rows, columns of the input, and of each result.",
        metavar="M,W0,W1[,W2…]",
        default=(),
        group=Group.FIRST,
    )
    attention: tuple[str, ...] = option(
        "Attention: heads, queries, keys, columns; then columns of values (value=), groups of heads that share keys "
        "and values.",
        metavar="H,M,N,D[,groups=G…]",
        default=(),
        group=Group.FIRST,
    )
    buffers: tuple[int, ...] = option(
        "Buffer sizes, in bytes or with a unit: 64KiB,1MB.",
        more="[Units](command-line.md#sizes); without, all powers of two of a shape, and 64 KiB to 16 MiB of a model.",
        read=sizes("B"),
        default=(),
        flags=("--buffer",),
        metavar="SIZE[,SIZE…]",
        group=Group.FIRST,
    )
    per: str = option(
        "Tables of a model: operator, model; both by default.",
        read=joined,
        default="",
        metavar="NAME[,NAME]",
        complete=ROWS,
        is_repeatable=True,
        group=Group.COUNTING,
    )
    word: int = option(
        "Size of a word, but of models.",
        more="There each operand and result has its own.",
        read=within(1, 16, "{} to {} bytes"),
        default=4,
        metavar="BYTES",
        group=Group.COUNTING,
    )
    tiles: str = option(
        "Tile sizes that are tried: integer or divisors.",
        more="Those that divide, as the tool of [huang24] has them.",
        default="integer",
        metavar="NAME",
        complete=("integer", "divisors"),
        group=Group.COUNTING,
    )
    halo: str = option(
        "What windows find again: true, or forget as Timeloop does.",
        default="true",
        metavar="NAME",
        complete=("true", "forget"),
        group=Group.COUNTING,
    )
    first_read: bool = option("Count the first visit to a tile of the result as a read.", group=Group.COUNTING)
    within: float | None = option(
        "Find the smallest buffer that moves at most so many times the least.",
        read=real(1, 10**300, FACTOR),
        metavar="FACTOR",
        group=Group.COUNTING,
    )
    shapes: Mapping[str, tuple[int, ...]] = shared.SHAPES
    dims: Mapping[str, int] = shared.DIMS
    fixed_inputs: Mapping[str, FixedInput] = shared.FIXED_INPUTS
    system: str | None = replace(
        shared.SYSTEM, help="The machine whose SRAM is marked and whose die is shared.", group=Group.MACHINE
    )

    def __post_init__(self) -> None:
        """Check what is asked.

        Raises:
            UserError: it is nothing, or several.
        """
        shapes = [f"--{name}" for name, _ in self.shapes_asked]
        if (self.model is None) is (not shapes):
            found = f"MODEL and {shapes[0]}" if shapes else "nothing"
            raise UserError(f"bounds: found {found} against MODEL, or one or more of {', '.join(_SHAPES)}")
        for position, shape in enumerate(self.shapes_asked):
            if shape in self.shapes_asked[:position]:
                raise UserError(f"--{shape[0]}: {shape[1]} is given twice")

    @property
    def shapes_asked(self) -> tuple[tuple[str, str], ...]:
        """The shapes that are given instead of a model: of which kind, and as texts."""
        return tuple(
            (name.removeprefix("--"), text) for name in _SHAPES for text in getattr(self, name.removeprefix("--"))
        )


@table
class BoundsOutputs:
    """Where bounds are written, and how."""

    svg: Path | None = option("Draw traffic over buffer size there.", more="On logarithmic axes.", group=Group.OUTPUT)
    intensity: bool = option("With --svg, draw operations per byte instead of bytes.", group=Group.OUTPUT)
    cloud: bool = option(
        "With --svg, draw all tilings of products of matrices as dots as well.",
        more="Of the tile sizes that `--tiles` names, in each order of the loops that may be best.",
        group=Group.OUTPUT,
    )
    html: Path | None = shared.HTML
    format: str = shared.ROW_FORMAT
    output: Path | None = shared.OUTPUT
