"""How many examples property tests try: each run draws new ones, and a long run draws many times as many."""

import os

from hypothesis import settings

TIMES = int(os.environ.get("PROPERTY_EXAMPLES", "1"))  # `make nightly` sets it
DEFAULT = 100


def examples(count: int) -> settings:
    """Return the settings of a property test that tries so many examples in every run, however long they take."""
    return settings(max_examples=count * TIMES, deadline=None)
