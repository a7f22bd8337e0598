"""Exploration of a model: the Pareto set over expansions, granularities, processing elements and on-chip memory."""

from dfcompile.exploration.asked import Asked, parse_memories, parse_objectives
from dfcompile.exploration.explored import Explored, explore_space
from dfcompile.exploration.objectives import Objective

__all__ = ["Asked", "Explored", "Objective", "explore_space", "parse_memories", "parse_objectives"]
