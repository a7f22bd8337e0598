"""What every expansion sees: a node of the program with its tensors, frozen."""

from dataclasses import dataclass
from typing import Generic

from dfcompile.errors import UnsupportedOpError
from dfcompile.lowering.operators.base import Canonical_co
from dfcompile.lowering.tensor import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A node of the program on its way to the next level.

    Attributes:
        name: unique in the program; a canonical operator's name is its origin's with a suffix (``conv1.matmul``).
        dialect: ``onnx`` or ``canonical``.
        op_type: such as ``Conv``.
        origin: the user's operator.
        inputs: by position; ``None`` where an optional operand is omitted.
        outputs: by position; ``None`` where an optional result is not used.
    """

    name: str
    dialect: str
    op_type: str
    origin: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor | None, ...]

    def input(self, position: int) -> Tensor:
        """Return an operand that must be there.

        Raises:
            UnsupportedOpError: it is omitted.
        """
        tensor = self.optional_input(position)
        if tensor is None:
            raise self.unsupported(f"operand {position} is omitted")
        return tensor

    def optional_input(self, position: int) -> Tensor | None:
        """Return an operand, or ``None`` if it is omitted."""
        return self.inputs[position] if position < len(self.inputs) else None

    def output(self, position: int = 0) -> Tensor:
        """Return a result that must be there.

        Raises:
            UnsupportedOpError: the model does not use it, so it has no array.
        """
        tensor = self.outputs[position] if position < len(self.outputs) else None
        if tensor is None:
            raise self.unsupported(f"result {position} is not used")
        return tensor

    def operands(self) -> tuple[Tensor, ...]:
        """Return the operands that are there, in order."""
        return tuple(tensor for tensor in self.inputs if tensor is not None)

    def results(self) -> tuple[Tensor, ...]:
        """Return the results that are there, in order."""
        return tuple(tensor for tensor in self.outputs if tensor is not None)

    def unsupported(self, reason: str) -> UnsupportedOpError:
        """Return the error that names this operator and its operands."""
        operands = ", ".join("omitted" if tensor is None else str(tensor) for tensor in self.inputs)
        return UnsupportedOpError(f"node {self.origin!r}: {self.op_type}({operands}): {reason}")


@dataclass(frozen=True, slots=True, eq=False)
class CanonicalNode(Node, Generic[Canonical_co]):
    """A node of level 1: a canonical operator with its tensors.

    Attributes:
        operator: such as ``MatMul(transpose_a=True)``.
    """

    operator: Canonical_co
