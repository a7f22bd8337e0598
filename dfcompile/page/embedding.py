"""Values in a page: JSON that cannot end its element, columns of numbers as base64, hashes for the security policy."""

import hashlib
import json
from base64 import b64encode

import numpy as np
from numpy.typing import NDArray

from dfcompile.report.plain_values import Json

# What could end the element, begin another or end a line of a script; JSON reads the escapes as the characters.
_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
LARGEST_INT32 = 2**31 - 1


def script_json(value: Json) -> str:
    r"""Return a value as JSON for a ``<script type="application/json">``.

    Raises:
        ValueError: a number that JSON has not: infinite or undefined.

    >>> script_json({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    # Only ASCII: no character of a name turns the text around it, whatever shows the page's source.
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(_ESCAPED)


def column(values: NDArray[np.int32] | NDArray[np.int64]) -> dict[str, Json]:
    """Return integers as a typed column: 4 bytes each, or 8 (as float64, exact up to 2^53) where they need it."""
    fits = not values.size or int(np.abs(values).max()) <= LARGEST_INT32
    held = values.astype("<i4" if fits else "<f8")
    return {"type": "i4" if fits else "f8", "base64": b64encode(held.tobytes()).decode("ascii")}


def policy_hash(text: str) -> str:
    """Return what a content security policy says of an inline script or style.

    >>> policy_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
