"""Fusion of the kernels of a dataflow graph."""
