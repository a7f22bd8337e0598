"""A value that differs from onnxruntime's, and a reason why it may."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import onnx

from tests.fuzz.comparison import LONGEST
from tests.fuzz.draw import Array


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A node whose value differs.

    Attributes:
        model: of the node.
        node: its only one.
        opset: its operator set.
        operands: of the node, by name.
        found: dfcompile's results.
        expected: onnxruntime's.
        longest: elements of the largest operand; a sum may have as many terms.
    """

    model: onnx.ModelProto
    node: onnx.NodeProto
    opset: int
    operands: Mapping[str, Array]
    found: Mapping[str, Array]
    expected: Mapping[str, Array]
    longest: int = LONGEST


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """A reason why a value may differ from onnxruntime's.

    Attributes:
        op_types: of the nodes.
        reason: why onnxruntime is no oracle here.
        source: where that can be read.
        holds: whether it explains the disagreement.
    """

    op_types: str
    reason: str
    source: str
    holds: Callable[[Disagreement], bool]
