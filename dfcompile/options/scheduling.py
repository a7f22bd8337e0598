"""The options of ``dfcompile schedule``."""

from fractions import Fraction
from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.options import shared
from dfcompile.options.compiling import PARTITIONS
from dfcompile.options.numbers import slack
from dfcompile.options.option import option, table
from dfcompile.options.readers import as_given, fifos, names
from dfcompile.options.words import Effort, Fifos, Objective, Timing


@table
class DagOptions:
    """Schedules of a canonical DAG."""

    dag: Path = option(as_given, "The graph, or its file.", is_argument=True, is_path=True)
    pes: tuple[int, ...] = shared.pes_option()
    partition: tuple[str, ...] = shared.list_option(
        names,
        "How spatial blocks are filled: best, sb-rlx, sb-lts, work-ordered or a plug-in's; several are compared, and "
        "the best is marked.",
        "NAME[,NAME…]",
        default=("best",),
        complete=PARTITIONS,
    )
    effort: Effort = shared.effort_option(Effort.DEFAULT)
    barrier: bool | None = shared.barrier_option()
    timing: Timing = shared.word_option(
        "Times of a replay with the FIFOs, or from mean intervals.", Timing, default=Timing.EXACT, stage="scheduling"
    )
    fifo: Fifos | None = option(
        fifos,
        "Sizes of FIFOs: the elements in flight, which delays nothing; the published rule; the smallest that delay "
        "nothing; or N elements. Without, in-flight, and with --timing steady rule.",
        default=None,
        metavar="in-flight|rule|minimal|N",
    )
    max_fifo: int | None = shared.max_fifo_option()
    objective: Objective = shared.word_option(
        "Which schedule is chosen: the shortest; or of those that take little more the one with the smallest FIFOs.",
        Objective,
        default=Objective.MAKESPAN,
    )
    slack: Fraction | None = option(
        slack,
        "With --objective fifo, how much more it may take than the shortest. Without, 10.",
        default=None,
        metavar="PERCENT",
    )
    front: bool = shared.flag_option("Show all schedules found of which none is both shorter and of smaller FIFOs.")
    simulate: bool = shared.flag_option("Replay the schedules with their FIFOs; say who waits for whom.")

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
