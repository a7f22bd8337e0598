"""How many examples property tests try: each run draws new ones, and a long run draws many times as many."""

import os
from fractions import Fraction

from hypothesis import settings

# Of the number that a test asks for: half of them in `make test` and `make unit`; `make nightly` says 20.
TIMES = Fraction(os.environ.get("PROPERTY_EXAMPLES", "1/2"))
DEFAULT = 100


def examples(count: int) -> settings:
    """Return the settings of a property test that asks for so many examples, however long they take."""
    return settings(max_examples=max(1, round(count * TIMES)), deadline=None)


def rounds(count: int) -> int:
    """Return how many of the numbered examples of a test that draws by itself are tried: the first ones."""
    return max(1, round(count * TIMES))
