"""ONNX's own inference of types and shapes, whose flaws are said as those of the model that shows them."""

import onnx
from onnx import shape_inference

from dfcompile.errors import UserError


def inferred_graph(proto: onnx.ModelProto, *, strict: bool = False, follow: bool = False) -> onnx.GraphProto:
    """Return the graph of a model with the types and shapes that ONNX infers.

    Args:
        proto: the model.
        strict: whether what contradicts itself is an error.
        follow: whether the elements of vectors that may be shapes are followed.

    Raises:
        UserError: ONNX's rules read an operand that has no elements, or need more memory than there is.
        shape_inference.InferenceError: the model contradicts itself.
        ValueError: it is none that ONNX can read.
    """
    try:
        return shape_inference.infer_shapes(proto, check_type=strict, strict_mode=strict, data_prop=follow).graph
    except IndexError as error:
        raise UserError(
            "model: an operand has no elements against those that its node reads, as ONNX infers shapes"
        ) from error
    except MemoryError as error:
        raise UserError(
            "model: sizes in it are so large that inferring its shapes needs more memory than there is"
        ) from error
