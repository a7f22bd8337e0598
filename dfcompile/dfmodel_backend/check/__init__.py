"""Checkers: accept or reject what solvers found, from first principles."""
