"""The options of reading a model."""

from collections.abc import Mapping

from msgspec import Struct, field

from dfcompile.options import FixedInput


class ReadOptions(Struct, frozen=True):
    """What reading a model needs to be told.

    Attributes:
        shapes: shape of an input by its name, for inputs with symbolic dimensions.
        dims: size of a symbolic dimension by its name, wherever it stands.
        fixed_inputs: value of an input by its name, which it has in every run.
        operators: types of ONNX operators that can be lowered; others are refused before anything is done. ``None``:
            whoever lowers them finds out.
    """

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    operators: frozenset[str] | None = None
    fixed_inputs: Mapping[str, FixedInput] = field(default_factory=dict)
