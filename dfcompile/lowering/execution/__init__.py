"""Lowered programs compiled and run, to compare their numbers with a reference."""
