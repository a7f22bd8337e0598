"""Reads JSON of the user: what is no number, or none that a float holds, is refused where it stands."""

import json
from collections.abc import Callable
from math import isfinite
from typing import NoReturn

Pairs = list[tuple[str, object]]


def parsed_json(text: str, pairs: Callable[[Pairs], object] | None = None) -> object:
    """Return the value of a JSON text.

    Args:
        text: JSON as the standard has it, without NaN and infinities [RFC 8259, section 6].
        pairs: makes the value of an object of its keys and values; by default a dictionary.

    Raises:
        ValueError: it is no JSON, or has a number that no float or integer of Python holds.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, object_pairs_hook=pairs, parse_float=_finite, parse_constant=_refused)


def _finite(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        _refused(digits)
    return value


def _refused(word: str) -> NoReturn:
    raise ValueError(f"found {word[:20]} against a finite number")
