"""A pass of the normaliser as a value."""

from collections.abc import Callable
from dataclasses import dataclass

from dfcompile.frontend.onnx.draft import Draft
from dfcompile.frontend.program import Coverage


@dataclass(frozen=True, slots=True)
class NormaliserPass:
    """A pass over a draft.

    Attributes:
        name: of the pass.
        run: returns another draft, or its argument itself if nothing changes.
        removed: what a node is that the pass takes away.
    """

    name: str
    run: Callable[[Draft], Draft]
    removed: Coverage
