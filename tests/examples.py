"""How many examples property tests try: the same in each run of the suite, others and many more in a long one.

A test that fails for one example in thousands fails in a long run, and not in that of somebody else's change.
"""

import os
from fractions import Fraction

from hypothesis import settings

# Of the number that a test asks for: a fifth of them in `make test` and `make unit`; `make nightly` says 20.
ASKED = os.environ.get("PROPERTY_EXAMPLES")
TIMES = Fraction(ASKED or "1/5")
DEFAULT = 100


def examples(count: int) -> settings:
    """Return the settings of a property test that asks for so many examples, however long they take."""
    return settings(max_examples=max(1, round(count * TIMES)), deadline=None, derandomize=not ASKED)


def rounds(count: int) -> int:
    """Return how many of the numbered examples of a test that draws by itself are tried: the first ones."""
    return max(1, round(count * TIMES))
