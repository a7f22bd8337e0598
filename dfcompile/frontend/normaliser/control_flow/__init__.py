"""Control flow: branches, loops and sequences that a model's own constants decide, as plain operators."""

from dfcompile.frontend.normaliser.control_flow.unrolling import without_control_flow

__all__ = ["without_control_flow"]
