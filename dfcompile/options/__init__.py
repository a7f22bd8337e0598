"""What a user may ask for: tables of options, what reads them, and their values."""

from dfcompile.options.commands import DagOptions, ExploreOptions, SetupOptions
from dfcompile.options.compiling import Options
from dfcompile.options.option import Option, of_stage, option, options_of, read_options, table, takes
from dfcompile.options.shared import Outputs, Pictures, RowOutputs
from dfcompile.options.words import (
    DEFAULT_SLACK,
    DEFAULT_TRIES,
    Aim,
    Choice,
    Effort,
    Expand,
    ExpansionRule,
    Fifos,
    FixedInput,
    Granularities,
    Number,
    Objective,
    ShowStage,
    Timing,
    Volumes,
    show_nothing,
)

__all__ = [
    "DEFAULT_SLACK",
    "DEFAULT_TRIES",
    "Aim",
    "Choice",
    "DagOptions",
    "Effort",
    "Expand",
    "ExpansionRule",
    "ExploreOptions",
    "Fifos",
    "FixedInput",
    "Granularities",
    "Number",
    "Objective",
    "Option",
    "Options",
    "Outputs",
    "Pictures",
    "RowOutputs",
    "SetupOptions",
    "ShowStage",
    "Timing",
    "Volumes",
    "of_stage",
    "option",
    "options_of",
    "read_options",
    "show_nothing",
    "table",
    "takes",
]
