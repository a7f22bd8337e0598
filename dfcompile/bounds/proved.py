"""Proved lower bounds."""
