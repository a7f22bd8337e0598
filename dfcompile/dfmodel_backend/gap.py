"""How far a time is above a bound."""


def gap_above(bound: float, time: float) -> float:
    """Return (time - bound) / bound, as gaps of makespans are given; 0 of a time that is its bound."""
    return (time - bound) / bound if time != bound else 0.0
