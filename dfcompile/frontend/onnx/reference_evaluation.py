"""ONNX's reference implementation: runs a model, or a single node of one, with numpy."""

import numpy as np
import onnx
from onnx import helper

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.draft import Constant, Constants
from dfcompile.frontend.onnx.element_type import onnx_type
from dfcompile.host.printable import one_line


def evaluate(model: onnx.ModelProto, feeds: Constants, failure: str) -> tuple[Constant, ...]:
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
    # Its pooling says by an AssertionError what it does not support.
    except (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"{failure}: {one_line(error)}") from error
    return tuple(np.asarray(output) for output in outputs)


def alone(node: onnx.NodeProto, operands: Constants, model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a node as a model of its own.

    Args:
        node: of a model.
        operands: its operands by name, the inputs of its own model.
        model: that it is of, whose operator sets it has.
    """
    given = operands.items()
    inputs = [helper.make_tensor_value_info(name, onnx_type(str(value.dtype)), value.shape) for name, value in given]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    graph = helper.make_graph([node], "alone", inputs, outputs)
    return helper.make_model(graph, opset_imports=list(model.opset_import), ir_version=model.ir_version)
