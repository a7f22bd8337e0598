"""Mapping: from a graph or a design to its configurations on chips."""
