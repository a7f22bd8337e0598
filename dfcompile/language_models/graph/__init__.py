"""Kernels from the graph that a model runs, to hold against the closed form."""
