"""Partitioners, one way to fill spatial blocks per file."""
