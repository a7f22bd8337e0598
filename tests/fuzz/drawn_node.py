"""A node as the generators draw it: an operator as of one operator set, its operands and attributes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx
from onnx.defs import OpSchema

from tests.fuzz.draw import Array, Draw

DTYPES: Mapping[str, str] = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    **{f"tensor({name})": name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    "tensor(bool)": "bool",
}
AttributeValue: TypeAlias = int | float | str | Sequence[int] | Sequence[float] | Sequence[str]


@dataclass(frozen=True, slots=True)
class OperatorVersion:
    """An operator as an operator set defines it."""

    op_type: str
    opset: int

    @property
    def schema(self) -> OpSchema:
        return onnx.defs.get_schema(self.op_type, self.opset, "")

    @property
    def since(self) -> int:
        return int(self.schema.since_version)

    def has(self, attribute: str) -> bool:
        return attribute in self.schema.attributes

    @property
    def operands(self) -> int:
        """How many operands it has at most."""
        return len(self.schema.inputs)

    def dtypes(self, position: int = 0) -> list[str]:
        """Return the numpy names of the types that an operand may have."""
        return [name for schema_name, name in DTYPES.items() if schema_name in self.schema.inputs[position].types]


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """Operands and attributes of a node.

    Attributes:
        operands: by position, ``None`` for one that is omitted.
        attributes: by name.
        structure: positions of the operands that are constants in most models.
        results: 1 for a result that is used, 0 for one that is not.
    """

    operands: Sequence[Array | None]
    attributes: Mapping[str, AttributeValue]
    structure: Sequence[int] = ()
    results: Sequence[int] = (1,)


Generator: TypeAlias = Callable[[OperatorVersion, Draw], DrawnNode]
