"""Models for tests of plug-ins, from ONNX's text form."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from dfcompile.errors import UserError
from dfcompile.frontend import Model, ReadOptions

Values = npt.NDArray[np.generic]
NO_PARAMETERS: Mapping[str, Values] = MappingProxyType({})
OPSET = 18


def model_of_text(graph: str, parameters: Mapping[str, Values] = NO_PARAMETERS) -> Model:
    """Return a model such as ``g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }``.

    Args:
        graph: in ONNX's text form, operators of set 18.
        parameters: values of constant operands by name.

    Raises:
        UserError: the text is no graph, or holds what cannot be compiled.
    """
    import onnx.parser

    from dfcompile.frontend.file_kinds.onnx_file import OnnxReference
    from dfcompile.frontend.onnx_model import program_of

    try:
        proto = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {OPSET}]> {graph}')
    except onnx.parser.ParseError as error:
        raise UserError(f"graph: {' '.join(str(error).split())}") from error
    for name, value in parameters.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return Model(program_of("g", proto, ReadOptions()), OnnxReference(proto))
