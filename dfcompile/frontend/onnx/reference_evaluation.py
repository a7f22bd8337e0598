"""ONNX's reference implementation: runs a model, or a single node of one, with numpy."""

from collections.abc import Mapping

import numpy as np
import onnx

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.draft import Constant
from dfcompile.frontend.onnx.one_line import one_line


def evaluate(model: onnx.ModelProto, feeds: Mapping[str, Constant], failure: str) -> tuple[Constant, ...]:
    """Return the outputs of a model in its order; an infinite or undefined result is a result.

    Args:
        model: any.
        feeds: its inputs by name.
        failure: what the error begins with.

    Raises:
        UserError: the implementation cannot run it.
    """
    from onnx.reference import ReferenceEvaluator  # many modules, and most models have nothing to evaluate

    try:
        with np.errstate(all="ignore"):
            outputs = ReferenceEvaluator(model).run(None, dict(feeds))
    except (
        ArithmeticError,
        AssertionError,  # how its pooling says what it does not support
        AttributeError,
        LookupError,
        NotImplementedError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise UserError(f"{failure}: {one_line(error)}") from error
    return tuple(np.asarray(output) for output in outputs)
