"""Contributed activations: Gelu in its variants."""

from collections.abc import Mapping

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.contributed_operator import Call, ContributedOperator, Shape

_REALS = ("float32", "float64", "float16")


class _Like(Struct, frozen=True):
    """The result is as large as an operand, to whose last dimension a bias is added.

    Attributes:
        operand: its name.
        result: its name.
        bias: its name, empty if there is none.
    """

    operand: str
    result: str
    bias: str = ""

    def __call__(self, call: Call) -> Mapping[str, Shape]:
        shape = call.shape(self.operand)
        if shape is None:
            return {}
        if call.has(self.bias):
            if not shape:
                raise UserError(f"{self.operand!r} is a scalar against at least 1 dimension, of the bias")
            call.expect(self.bias, shape[-1:])
        return {self.result: shape}


ACTIVATIONS = (
    ContributedOperator("Gelu", "X:T", "Y:T", _Like("X", "Y"), {"T": _REALS}),
    ContributedOperator("FastGelu", "X:T bias:T?", "Y:T", _Like("X", "Y", "bias"), {"T": _REALS}),
    ContributedOperator("BiasGelu", "A:T B:T", "C:T", _Like("A", "C", "B"), {"T": _REALS}),
    ContributedOperator("QuickGelu", "X:T", "Y:T", _Like("X", "Y"), {"T": _REALS}, {"alpha": 1.702}),
)
