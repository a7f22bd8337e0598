"""Exploration of a model: the Pareto set over expansions, granularities, processing elements and on-chip memory."""

from dfcompile.exploration.asked import Asked as Asked
from dfcompile.exploration.asked import Objective as Objective
from dfcompile.exploration.explored import Explored as Explored
from dfcompile.exploration.explored import explore_space as explore_space
