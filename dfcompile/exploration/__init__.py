"""Exploration of a model: the Pareto set over expansions, granularities, processing elements and on-chip memory."""

from dfcompile.exploration.asked import Asked, Objective, parse_objectives
from dfcompile.exploration.explored import Explored, explore_space

__all__ = ["Asked", "Explored", "Objective", "explore_space", "parse_objectives"]
