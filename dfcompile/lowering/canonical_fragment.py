"""What an expansion of an ONNX operator builds with: canonical operators, arrays and views."""

from collections.abc import Iterable, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from dfcompile.frontend import CANONICAL, AttributeValue, input_connector, output_connector
from dfcompile.frontend.sdfg.identifiers import safe_identifier
from dfcompile.lowering.operator import Operator, Tensor
from dfcompile.lowering.program_builder import ProgramBuilder

_MOST_ELEMENTS = 2**26  # of a constant that lowering computes


class CanonicalFragment:
    """The canonical operators that replace one ONNX operator."""

    def __init__(self, builder: ProgramBuilder, op: Operator) -> None:
        self._builder = builder
        self._op = op
        self.operators_count = 0

    def array(self, name: str, shape: Iterable[int], dtype: str | None = None, *, materialised: bool = False) -> Tensor:
        """Add an intermediate array and return it.

        Args:
            name: short; the operator's name is put before it.
            shape: in elements.
            dtype: numpy name; of operand 0 unless given.
            materialised: the array lives in memory, its producer and consumer are never joined by a stream.
        """
        full = self._full_name(name)
        return self._builder.add_array(full, shape, dtype or self._op.input(0).dtype, materialised=materialised)

    def check_parameter(self, shape: Iterable[int]) -> None:
        """Check that a constant array can be made; to be asked before it is computed.

        Raises:
            UnsupportedOpError: it has too many elements.
        """
        elements = prod(shape)
        if elements > _MOST_ELEMENTS:
            raise self._op.unsupported(f"needs a constant of {elements} elements against at most {_MOST_ELEMENTS}")

    def parameter(self, name: str, value: npt.NDArray[np.generic]) -> Tensor:
        """Add a constant array that is computed here, once."""
        return self._builder.add_parameter(self._full_name(name), value)

    def view(self, source: Tensor, name: str, shape: Iterable[int]) -> Tensor:
        """Return the same elements in the same order under another shape: no data moves."""
        return self._builder.add_view(source, self._full_name(name), shape)

    def view_as(self, source: Tensor, target: Tensor) -> None:
        """Make the operator's result a view of ``source``; a copy where the result must be an array of its own."""
        if self._builder.can_be_view(source, target.name):
            self._builder.add_view(source, target.name, target.shape)
        else:
            self.op("Copy", "", [self.view(source, "view", target.shape)], [target])

    def _full_name(self, name: str) -> str:
        return self._builder.free_name(f"{identifier(self._op.name)}_{name}")

    def op(
        self,
        op_type: str,
        step: str,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        **attributes: AttributeValue,
    ) -> None:
        """Add a canonical operator.

        Args:
            op_type: such as ``MatMul``.
            step: what it does within the operator, such as ``im2col``; empty if the operator is this one step.
            inputs: operands in order.
            outputs: arrays it writes; the operator's own results or arrays of `array`.
            attributes: of the canonical operator; ``gemm=(outer, m, k, n)`` for one that contracts a dimension.
        """
        builder = self._builder
        for tensor in outputs:
            if tensor.name not in builder.sdfg.arrays:
                builder.add_array(tensor.name, tensor.shape, tensor.dtype)
        node = builder.nodes.operator(
            f"{self._op.name}.{step}" if step else self._op.name,
            dialect=CANONICAL,
            op_type=op_type,
            origin=self._op.origin,
            attributes=attributes,
            inputs=[input_connector(position) for position in range(len(inputs))],
            outputs=[output_connector(position) for position in range(len(outputs))],
        )
        builder.add_operator(node, inputs, outputs)
        self.operators_count += 1


def identifier(name: str) -> str:
    """Return a name as an identifier of C++: of other scripts nothing stays.

    >>> identifier("conv1.matmul")
    'conv1_matmul'
    """
    if not name.isascii():
        return safe_identifier(name)
    return "".join(character if character.isalnum() else "_" for character in name)
