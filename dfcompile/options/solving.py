"""The options of ``dfcompile SETUP``."""

from pathlib import Path

from dfcompile.options.option import option, table
from dfcompile.options.readers import path, text
from dfcompile.options.shared import format_option, html_option, solver_option, verbose_option, word_option

SHARDING_OBJECTIVES = ("bytes", "time")


@table
class SetupOptions:
    """A set-up file of DFModel that is solved."""

    setup: Path = option(path, "The file, text or binary.", is_argument=True, is_path=True)
    compat: str = option(
        text,
        "Repeat flaws of DFModel: all of its newest code (dfmodel), then switches such as network-is-sum, "
        "no-weights-not-read, all-reduce-factor=2; see the manual.",
        default="right",
        metavar="right|dfmodel[,SWITCH…]",
    )
    solver: str = solver_option()
    sharding_objective: str | None = word_option(
        "What the sharding minimises: bytes between chips, or time.",
        SHARDING_OBJECTIVES,
        default_text="time; bytes with --compat dfmodel",
    )


@table
class SetupOutputs:
    """Where a solved design is written, and how."""

    html: Path | None = html_option()
    format: str = format_option()
    verbose: bool = verbose_option()
    output: Path | None = option(
        path,
        "Write the solved file, the report and pictures there. The folder is new, empty or an earlier one.",
        default=None,
        flags=("-o", "--output"),
        metavar="DIR",
        is_path=True,
    )
