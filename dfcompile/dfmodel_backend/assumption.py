"""What a figure rests on, said in the report, and how far a time is above its bound."""

from msgspec import Struct


def gap_above(bound: float, time: float) -> float:
    """Return (time - bound) / bound, as gaps of makespans are given; 0 of a time that is its bound."""
    return (time - bound) / bound if time != bound else 0.0


class Assumption(Struct, frozen=True):
    """A value that the user did not give, and where it comes from."""

    name: str
    value: str
    source: str
