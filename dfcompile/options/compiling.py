"""The options of ``dfcompile MODEL``."""

from collections.abc import Mapping
from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.expansion_names import QUICK
from dfcompile.options import shared
from dfcompile.options.option import first, lowering, machine, option, schedules, table
from dfcompile.options.readers import passes
from dfcompile.options.words import Aim, Effort, Expand, FixedInput, Granularities, MicroBatches, Timing, Volumes
from dfcompile.records import replace

OVERLAPS = ("perfect", "none", "compute-memory")
CHOSEN = Expand(rest=QUICK)


@table
class Options:
    """A run of the main job."""

    model: Path = option("File to read.", is_argument=True)
    pes: tuple[int, ...] = shared.PES
    expand: Expand = first(
        "How to split operators into tasks. quick (default) chooses for each number of PEs; auto compares more "
        "choices; published takes the default of each type; rules such as Conv=direct or MatMul=mv,ip are all "
        "combined and compared.",
        more="See [choosing expansions](choosing.md). A rule is for an operator type, one operator (`NAME=…`) or all "
        "that a pattern fits. Beside `auto` or `quick` it leaves the rest to be chosen; alone, the rest is as "
        "published, so that results differ in nothing else. `dfcompile expansions` lists the names and marks the "
        "published ones: `*` always, `+` where the description says so (a grouped convolution is not turned into "
        "products of tiny matrices).",
        default=CHOSEN,
        metavar="auto|quick|published|[PATTERN/]OP=NAME[,NAME…]",
        complete="lowering",
    )
    choice: Path | None = lowering(
        "Take the choice for each number of PEs from a file that --save-choice wrote.",
        more="A [text](choosing.md#keeping-a-choice) of options.",
    )
    objective: Aim = lowering(
        "What to minimise when choosing: time on the machine, makespan as if memory took no time, I/O, energy or cost."
    )
    volumes: Volumes = lowering(
        "What to count on an edge between two tasks: what the task itself moves, or the whole array."
    )
    partition: str = shared.PARTITION
    effort: Effort = replace(shared.EFFORT, default=Effort.QUICK)
    barrier: bool | None = shared.BARRIER
    max_fifo: int | None = shared.MAX_FIFO
    what_if: Mapping[str, int | str] = shared.WHAT_IF
    timing: Timing = replace(shared.TIMING, more="*steady* also stands beside what is too large for a replay.")
    repeat: int = schedules(
        "Run the model N times, each on its own inputs, all in one schedule.",
        more="See [many iterations](scheduling.md#many-iterations).",
        default=1,
        metavar="N",
    )
    granularity: Granularities = lowering(
        "How finely to cut operators into tasks: declared (as the expansion says), pieces=N, max-tasks=N or split=N. "
        "Without, chosen if expansions are, else as declared.",
        more="`pieces=N` cuts every loop nest, or those of one operator, into up to N tasks; `ORIGIN:pieces=N,rest=M` "
        "those with less than half the iterations of its largest into up to M. `max-tasks=N` joins tasks of a family "
        "until there are N at most. `split=N` cuts large tasks into up to N.",
        default=Granularities(),
        metavar="declared|[ORIGIN:]pieces=N|max-tasks=N|split=N",
    )
    micro_batches: MicroBatches = lowering(
        "Run the model in parts of a dimension of --dim, each on a group of PEs: auto, whole, or the size of a part.",
        more="No part needs anything of another. *auto* looks at parts where the whole takes longer than it need; "
        "`NAME=SIZE/GROUPS` runs so many at once. See [micro-batches](mapping.md#micro-batches).",
        default=MicroBatches(),
        metavar="auto|whole|NAME=SIZE[/GROUPS]",
    )
    passes: tuple[str, ...] = lowering(
        "Passes that rewrite the program or the graph of tasks, in this order.",
        more="As in `fuse-elementwise{max=8},drop-dead`; `dfcompile passes` lists the [passes](plugins/passes.md) and "
        "their options.",
        read=passes,
        default=(),
        metavar="NAME[{OPTION=VALUE,…}][,NAME…]",
    )
    shapes: Mapping[str, tuple[int, ...]] = replace(shared.SHAPES, help="Size of a model input.")
    dims: Mapping[str, int] = shared.DIMS
    fixed_inputs: Mapping[str, FixedInput] = shared.FIXED_INPUTS
    system: str | None = replace(
        shared.SYSTEM,
        help="Machine: a name that 'dfcompile systems' lists, or a system file (-: stdin). Without, the canonical one: "
        "a chip with as many cores as PEs.",
        more="The file is [YAML](system-files.md).",
    )
    chips: tuple[int, ...] = first(
        "Chips available. Operators are split over as many of them as give the least time.",
        more="See [mappings on several chips](mapping.md#several-chips) and [their "
        "shardings](dfmodel-explained.md#models-on-several-chips).",
        default=(1,),
        metavar="N[,N…]",
    )
    overlap: str = machine(
        "Whether computing, memory and network traffic take place at the same time.", choices=OVERLAPS
    )
    solver: str = shared.SOLVER
    verify: bool = lowering(
        "Compile and run the lowered model and compare its results with PyTorch's, ONNX's or NumPy's.",
        more="On the example inputs, see [below](#verification); needs g++.",
    )

    def __post_init__(self) -> None:
        """Check what options say together.

        Raises:
            UserError: an objective of a choice is given, and nothing is chosen; or a choice beside the file of one.
        """
        if self.choice is not None:
            named = (("--expand", self.expand != CHOSEN), ("--granularity", self.granularity != Granularities()),
                     ("--objective", self.objective is not Aim.TIME),
                     ("--micro-batches", not self.micro_batches.is_chosen))  # fmt: skip
            for flag in (flag for flag, is_given in named if is_given):
                raise UserError(f"{flag}: found beside --choice, which says all of it, against one of them")
        if self.repeat > 1 and self.micro_batches.size:
            raise UserError("--micro-batches: found beside --repeat, which repeats the whole, against one of them")
        if self.objective is not Aim.TIME and not self.expand.chooses:
            raise UserError(
                f"--objective: found {self.objective} beside rules or published, without --expand auto (add it: only a "
                "choice has an objective)"
            )
