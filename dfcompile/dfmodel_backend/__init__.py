"""The DFModel back end: a dataflow graph becomes configurations on chips, with time, cost and power [ko24]."""

import importlib
import re
from pathlib import Path

# The stub lists the names by module, which is imported when one is first used: who reads a system file needs no solver.
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_PLACES = {name: module for module, name in re.findall(r"^from (\S+) import (\w+)", _STUB, re.MULTILINE)}
__all__ = list(_PLACES)


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = found  # found at once from now on
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
