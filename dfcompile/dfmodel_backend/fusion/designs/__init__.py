"""Fusion of the kernels of a design."""
