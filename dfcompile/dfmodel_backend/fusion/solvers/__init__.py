"""Solvers of fusion, one per file."""
