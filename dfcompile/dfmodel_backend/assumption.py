"""What a figure rests on, said in the report."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Assumption:
    """A value that the user did not give, and where it comes from."""

    name: str
    value: str
    source: str
