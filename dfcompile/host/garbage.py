"""How often Python looks for garbage: seldom, since nearly all objects that are made stay until the end."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# New objects (some 100 MB), and rounds of the generations before.
COLLECTED_AFTER = (2_000_000, 50, 10)


@contextmanager
def collected_seldom() -> Iterator[None]:
    """Look for garbage seldom within a call, or the body: for 32 layers of a decoder that saves a fifth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(*COLLECTED_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)
