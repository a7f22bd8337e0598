"""Files that `torch.export.save` has written: a PyTorch model as a graph, with the inputs that it was exported with."""

from pathlib import Path

from dfcompile.frontend.file_kinds.python_file import exported_model, require_torch
from dfcompile.frontend.model import FileKind, Model, ReadOptions


def read_exported(path: Path, options: ReadOptions) -> Model:
    """Return the model in a ``.pt2`` file.

    Raises:
        UserError: PyTorch is missing, the file holds no exported program, or that cannot be exported to ONNX.
    """
    require_torch(path)
    from dfcompile.frontend.torch.torch_model import loaded_program, torch_model

    return exported_model(path.stem, torch_model(path, loaded_program(path), None), options)


EXPORTED_FILE = FileKind(".pt2", read_exported)
