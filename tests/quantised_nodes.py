"""Nodes on quantised tensors with random operands, and how they compare with onnxruntime."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from dfcompile.frontend.onnx import onnxruntime_evaluation
from dfcompile.lowering import Choice
from tests.interpreter import interpret
from tests.onnx_nodes import Array, Node, lowered

BYTES = ("uint8", "int8")


class Quantised:
    """Random tensors of 8 bits with scales and zero points; everything follows from the seed."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def steps(self, dtype: str, shape: Sequence[int]) -> Array:
        limits = np.iinfo(dtype)
        return self.generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)

    def scale(self, shape: Sequence[int] = (), least: float = 0.01, most: float = 0.2) -> npt.NDArray[np.float32]:
        return self.generator.uniform(least, most, shape).astype(np.float32)

    def three(self, dtype: str, shape: Sequence[int]) -> tuple[Array, Array, Array]:
        """Return steps, a scale and a zero point."""
        return self.steps(dtype, shape), self.scale(), self.steps(dtype, ())


def answer(node: Node) -> dict[str, Array]:
    """Return what onnxruntime computes."""
    model = node.model()
    found = onnxruntime_evaluation.evaluated(model, node.feeds)
    assert found is not None, f"onnxruntime does not run {node}"
    return dict(zip((output.name for output in model.graph.output), found[1], strict=True))


def found_by(node: Node, choices: Sequence[Choice] = ()) -> dict[str, Array]:
    """Return what the lowered node computes; it is verified that its tasks are canonical."""
    return interpret(lowered(node.model(), choices), node.feeds)


def assert_within_a_step(found: Mapping[str, Array], expected: Mapping[str, Array], most: float = 0.02) -> None:
    """Compare integers, of which a few may lie on the other side of a half; real numbers to single precision."""
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), name
        difference = np.abs(found[name].astype(np.float64) - value.astype(np.float64))
        if value.dtype.kind in "iu":
            assert difference.max(initial=0) <= 1, name
            assert np.count_nonzero(difference) <= max(1, most * value.size), name
        else:
            assert difference.max(initial=0) <= 1e-4 * max(1.0, np.abs(value).max(initial=0.0)), name
