"""The options of reading a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What reading a model needs to be told.

    Attributes:
        shapes: shape of an input by its name, for inputs with symbolic dimensions.
        dims: size of a symbolic dimension by its name, wherever it stands.
    """

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
