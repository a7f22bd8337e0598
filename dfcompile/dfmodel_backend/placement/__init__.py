"""Placement: where the units of a configuration lie on the chip."""
