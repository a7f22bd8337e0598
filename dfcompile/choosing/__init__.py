"""The automatic choice of expansions and granularities for a whole model."""

from dfcompile.choosing.candidate import Candidate, granularities
from dfcompile.choosing.scoring import Makespans, Score, Scores
from dfcompile.choosing.search import Rival, Selection, select
from dfcompile.choosing.sketches import Sketch, Sketches
from dfcompile.choosing.space import space_of

__all__ = [
    "Candidate",
    "Makespans",
    "Rival",
    "Score",
    "Scores",
    "Selection",
    "Sketch",
    "Sketches",
    "granularities",
    "select",
    "space_of",
]
