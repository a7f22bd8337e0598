"""Assumptions behind the figures of a report, and the gap between a time and its lower bound."""

from msgspec import Struct


def gap_above(bound: float, time: float) -> float:
    """Return (time - bound) / bound, the gap also of makespans; 0 if they are equal, also where both are 0."""
    return (time - bound) / bound if time != bound else 0.0


class Assumption(Struct, frozen=True):
    """A value that the user did not give, and where it comes from."""

    name: str
    value: str
    source: str
