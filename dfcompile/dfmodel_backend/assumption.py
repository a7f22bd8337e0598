"""What a figure rests on, said in the report."""

from msgspec import Struct


class Assumption(Struct, frozen=True):
    """A value that the user did not give, and where it comes from."""

    name: str
    value: str
    source: str
