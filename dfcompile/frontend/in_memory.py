"""Models that are in memory already: an ONNX model, or a PyTorch module with inputs that it takes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dfcompile.errors import UserError
from dfcompile.frontend.model import Model, ReadOptions
from dfcompile.frontend.reading import ReadModel

if TYPE_CHECKING:
    import onnx
    import torch  # noqa: TID251  # for its types alone


@contextmanager
def reading(model: "onnx.ModelProto | torch.nn.Module", example_inputs: object = None) -> Iterator[ReadModel]:
    """Give what reads a model in memory; the path that it is given is the model's name.

    A PyTorch module is in inference mode within the body, and as before behind it.

    Args:
        model: the model.
        example_inputs: of a module: a tensor, a tuple of arguments, or a dictionary of arguments by name.

    Raises:
        UserError: it is no model, or the example inputs are missing, or given beside an ONNX model.
    """
    # Whoever has such a value has imported what made it.
    if "torch" in sys.modules and isinstance(model, sys.modules["torch"].nn.Module):
        if example_inputs is None:
            raise UserError("model: found a torch.nn.Module without example_inputs (a tensor, a tuple or a dictionary)")
        from dfcompile.frontend.file_kinds.python_file import model_of, require_torch
        from dfcompile.frontend.torch.torch_model import export_onnx, inference_mode, torch_model

        def read(path: Path, options: ReadOptions) -> Model:
            require_torch(path)
            found = torch_model(path, model, example_inputs)
            return model_of(path.name, found, *export_onnx(found), options)

        with inference_mode(model):
            yield read
    elif "onnx" in sys.modules and isinstance(model, sys.modules["onnx"].ModelProto):
        if example_inputs is not None:
            raise UserError("example_inputs: given beside an ONNX model against a torch.nn.Module")
        from dfcompile.frontend.file_kinds.onnx_file import onnx_model

        yield lambda path, options: onnx_model(path.name, model, options)
    else:
        found = f"a value of type {type(model).__name__}"
        raise UserError(f"model: found {found} against a file, an onnx.ModelProto or a torch.nn.Module")
