"""The automatic choice of expansions and granularities for a whole model."""

from dfcompile.choosing.candidate import Candidate, granularities, space_of
from dfcompile.choosing.estimate import Estimate, Memory
from dfcompile.choosing.operator_options import OperatorOption, OperatorOptions
from dfcompile.choosing.scoring import (
    QUICK,
    SLOWLY_SCHEDULED,
    THOROUGH,
    UNBOUNDED,
    Limits,
    Machine,
    Makespans,
    Score,
    Scores,
    Traffic,
)
from dfcompile.choosing.search import AutomaticChoice, Rival, Selection, select
from dfcompile.choosing.sketches import Sketch, Sketches

__all__ = [
    "QUICK",
    "SLOWLY_SCHEDULED",
    "THOROUGH",
    "UNBOUNDED",
    "AutomaticChoice",
    "Candidate",
    "Estimate",
    "Limits",
    "Machine",
    "Makespans",
    "Memory",
    "OperatorOption",
    "OperatorOptions",
    "Rival",
    "Score",
    "Scores",
    "Selection",
    "Sketch",
    "Sketches",
    "Traffic",
    "granularities",
    "select",
    "space_of",
]
