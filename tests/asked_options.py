"""Options as a user says them; without a word about expansions these are the published ones."""

from collections.abc import Iterable
from pathlib import Path

from dfcompile.expansion_names import PUBLISHED
from dfcompile.options import Options, read_options


def asked(model: Path, pes: Iterable[int], *expand: str, **more: object) -> Options:
    """Return the options of a run."""
    return read_options(Options, {"model": model, "pes": tuple(pes), "expand": expand or (PUBLISHED,), **more})
