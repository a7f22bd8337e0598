"""The options of ``dfcompile MODEL``."""

from collections.abc import Mapping
from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.expansion_names import QUICK
from dfcompile.options import shared
from dfcompile.options.commands import PARTITIONS
from dfcompile.options.option import Group, option, table
from dfcompile.options.readers import passes
from dfcompile.options.words import Aim, Effort, Expand, FixedInput, Granularities, Timing, Volumes
from dfcompile.records import replace

OVERLAPS = ("perfect", "none", "compute-memory")
CHOSEN = Expand(rest=QUICK)


@table
class Options:
    """A run of the main job."""

    model: Path = option("File to read.", is_argument=True)
    pes: tuple[int, ...] = shared.PES
    expand: Expand = option(
        "How operators are lowered: chosen for each number of PEs, tasks as well (quick, by default; auto compares "
        "with more other choices); published, the default of each type; or by rules such as Conv=direct or "
        "MatMul=mv,ip, all combined and compared.",
        more="See [choosing expansions](choosing.md). A rule is for an operator type, an operator (`NAME=…`) or those "
        "that a pattern fits; beside `auto` or `quick` it leaves the rest open. `dfcompile expansions` lists the "
        "names, and marks what is taken where none is given: `*` always, `+` where the description says so "
        "(grouped convolutions are not turned into products of tiny matrices). Beside rules alone the rest is as "
        "published, so that variants differ in nothing else.",
        default=CHOSEN,
        metavar="auto|quick|published|[PATTERN/]OP=NAME[,NAME…]",
        complete="lowering",
        group=Group.FIRST,
    )
    choice: Path | None = option(
        "Take expansions and granularity of each number of PEs from a file that --save-choice wrote.",
        more="A [text](choosing.md#keeping-a-choice) of options.",
        group=Group.LOWERING,
    )
    objective: Aim = option(
        "What to minimise when choosing expansions: the time on the machine (makespan: as if memory took none), I/O, "
        "energy or cost.",
        group=Group.LOWERING,
    )
    volumes: Volumes = option(
        "Of edges between tasks: each task's own share, or the whole array.", group=Group.LOWERING
    )
    partition: str = option(
        "How spatial blocks are filled: best, sb-rlx, sb-lts, work-ordered or a plug-in's.",
        default="best",
        metavar="NAME",
        complete=PARTITIONS,
        stage="scheduling",
        group=Group.SCHEDULE,
    )
    effort: Effort = replace(shared.EFFORT, default=Effort.QUICK)
    barrier: bool | None = shared.BARRIER
    max_fifo: int | None = shared.MAX_FIFO
    timing: Timing = option(
        "Times of schedules: of a replay with their FIFOs, or from mean intervals.",
        more="*steady* is printed beside what is too large for a replay.",
        default=Timing.EXACT,
        stage="scheduling",
        group=Group.SCHEDULE,
    )
    repeat: int = option(
        "Run the model N times, each on inputs of its own, beside each other.",
        more="See [many iterations](scheduling.md#many-iterations).",
        default=1,
        metavar="N",
        group=Group.SCHEDULE,
    )
    granularity: Granularities = option(
        "Tasks as the expansions declare them, scopes divided into pieces, families grouped, or large tasks "
        "split; what it leaves open is chosen where expansions are, else as declared.",
        more="Every scope, or those of one operator, in up to N pieces; at most N tasks per family; large tasks cut "
        "into up to N.",
        default=Granularities(),
        metavar="declared|[ORIGIN:]pieces=N|max-tasks=N|split=N",
        group=Group.LOWERING,
    )
    passes: tuple[str, ...] = option(
        "Passes of programs and of canonical DAGs to apply, in order.",
        more="As in `fuse-elementwise{max=8},drop-dead`; `dfcompile passes` lists the [passes](plugins/passes.md) and "
        "their options.",
        read=passes,
        default=(),
        metavar="NAME[{OPTION=VALUE,…}][,NAME…]",
        group=Group.LOWERING,
    )
    shapes: Mapping[str, tuple[int, ...]] = replace(shared.SHAPES, help="Size of a model input.")
    dims: Mapping[str, int] = shared.DIMS
    fixed_inputs: Mapping[str, FixedInput] = shared.FIXED_INPUTS
    system: str | None = replace(
        shared.SYSTEM,
        help="Machine, a file (-: stdin) or a name; by default the canonical one, one core per P.",
        more="A [YAML file](system-files.md), or a name that `dfcompile systems` lists.",
    )
    chips: tuple[int, ...] = option(
        "Chips at hand; kernels are sharded over as many of them as give the least time.",
        more="See [mappings on several chips](mapping.md#several-chips) and [their "
        "shardings](dfmodel.md#models-on-several-chips).",
        default=(1,),
        metavar="N[,N…]",
        group=Group.FIRST,
    )
    overlap: str = option(
        "Of compute, memory and network time of a configuration.", choices=OVERLAPS, group=Group.MACHINE
    )
    solver: str = shared.SOLVER
    verify: bool = option(
        "Compile and run the lowered model and compare it with a reference.",
        more="On an example, see [below](#verification); needs g++.",
        group=Group.LOWERING,
    )

    def __post_init__(self) -> None:
        """Check what options say together.

        Raises:
            UserError: an objective of a choice is given, and nothing is chosen; or a choice beside the file of one.
        """
        if self.choice is not None:
            named = (("--expand", self.expand != CHOSEN), ("--granularity", self.granularity != Granularities()),
                     ("--objective", self.objective is not Aim.TIME))  # fmt: skip
            for flag in (flag for flag, is_given in named if is_given):
                raise UserError(f"{flag}: found beside --choice, which says all of it, against one of them")
        if self.objective is not Aim.TIME and not self.expand.chooses:
            raise UserError(
                f"--objective: found {self.objective} beside rules or published, without --expand auto, which it is "
                "about"
            )
