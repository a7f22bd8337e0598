"""Expansions and passes of a laboratory of its own."""
