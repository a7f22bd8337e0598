"""Models that are in memory already: an ONNX model, a PyTorch module with inputs that it takes, or an exported one."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from dfcompile.errors import UserError
from dfcompile.frontend.model import Model, ReadOptions
from dfcompile.frontend.reading import ReadModel

if TYPE_CHECKING:
    import onnx
    import torch  # noqa: TID251  # for its types alone


@contextmanager
def reading(
    model: "onnx.ModelProto | torch.nn.Module | torch.export.ExportedProgram",
    example_inputs: object = None,
    dynamic_shapes: object = None,
) -> Iterator[ReadModel]:
    """Give what reads a model in memory; the path that it is given is the model's name.

    A PyTorch module is in inference mode within the body, and as before behind it.

    Args:
        model: the model.
        example_inputs: a tensor, a tuple of arguments, or a dictionary of arguments by name, as a model file has them;
            of an exported program ``None`` are those that it was exported with.
        dynamic_shapes: of a module: which sizes of the inputs vary, as `torch.export.export` takes it.

    Raises:
        UserError: it is no model, or the example inputs are missing, or given beside an ONNX model.
    """
    # Whoever has such a value has imported what made it.
    torch, onnx = (sys.modules.get(package) for package in ("torch", "onnx"))
    is_module = torch is not None and isinstance(model, torch.nn.Module)
    if is_module and example_inputs is None:
        raise UserError("model: found a torch.nn.Module without example_inputs (a tensor, a tuple or a dictionary)")
    if not is_module and dynamic_shapes is not None:
        raise UserError("dynamic_shapes: given beside another model against a torch.nn.Module")
    if is_module or (torch is not None and isinstance(model, torch.export.ExportedProgram)):
        from dfcompile.frontend.file_kinds.python_file import exported_model, require_torch
        from dfcompile.frontend.torch.torch_model import inference_mode, torch_model

        def read(path: Path, options: ReadOptions) -> Model:
            require_torch(path)
            return exported_model(path.name, torch_model(path, model, example_inputs, dynamic_shapes), options)

        with inference_mode(model) if is_module else nullcontext():
            yield read
    elif onnx is not None and isinstance(model, onnx.ModelProto):
        if example_inputs is not None:
            raise UserError("example_inputs: given beside an ONNX model against a PyTorch model")
        from dfcompile.frontend.file_kinds.onnx_file import onnx_model

        yield lambda path, options: onnx_model(path.name, model, options)
    else:
        found, wanted = f"a value of type {type(model).__name__}", "an onnx.ModelProto, a torch.nn.Module"
        raise UserError(f"model: found {found} against a file, {wanted} or a torch.export.ExportedProgram")
