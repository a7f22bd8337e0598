"""The automatic choice of expansions and granularities for a whole model."""

from dfcompile.choosing.automatic import AutomaticChoice
from dfcompile.choosing.candidate import Candidate
from dfcompile.choosing.estimate import Estimate, Memory
from dfcompile.choosing.operator_options import OperatorOption, OperatorOptions
from dfcompile.choosing.scoring import (
    QUICK,
    SLOWLY_SCHEDULED,
    THOROUGH,
    UNBOUNDED,
    Limits,
    Machine,
    Score,
    Scores,
    Traffic,
)
from dfcompile.choosing.search import Selection
from dfcompile.choosing.sketches import Sketch

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
    "Memory",
    "OperatorOption",
    "OperatorOptions",
    "Score",
    "Scores",
    "Selection",
    "Sketch",
    "Traffic",
]
