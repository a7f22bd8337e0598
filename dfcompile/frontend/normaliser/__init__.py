"""Normaliser: small passes from a draft to a simpler one, with a record of what became of each node."""

from dfcompile.frontend.normaliser.pipeline import VIEWS, Normalised, normalise

__all__ = ["VIEWS", "Normalised", "normalise"]
