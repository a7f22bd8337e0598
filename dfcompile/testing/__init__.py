"""What tests of plug-ins need."""

from dfcompile.testing.expansions import canonical_program, check_expansion

__all__ = ["canonical_program", "check_expansion"]
