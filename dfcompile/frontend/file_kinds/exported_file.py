"""Files that `torch.export.save` has written: a PyTorch model as a graph, with the inputs that it was exported with."""

from pathlib import Path

from dfcompile.frontend.file_kinds.python_file import model_of, require_torch
from dfcompile.frontend.model import FileKind, Model, ReadOptions
from dfcompile.host.stages import stage


def read_exported(path: Path, options: ReadOptions) -> Model:
    """Return the model in a ``.pt2`` file.

    Raises:
        UserError: PyTorch is missing, the file holds no exported program, or that cannot be exported to ONNX.
    """
    require_torch(path)
    from dfcompile.frontend.torch.torch_model import export_onnx, loaded_program, torch_model

    found = torch_model(path, loaded_program(path), None)
    with stage("exporting it to ONNX"):
        exported, weights = export_onnx(found)
    return model_of(path.stem, found, exported, weights, options)


EXPORTED_FILE = FileKind(".pt2", read_exported)
