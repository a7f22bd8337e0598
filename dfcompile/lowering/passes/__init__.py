"""Lowering passes, like ones in a file."""
