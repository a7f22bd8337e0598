"""PyTorch models in files: Python code, run with the user's rights, or what `torch.export.save` has written."""

import importlib.util
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from dfcompile.errors import UserError
from dfcompile.frontend.model import Array, FileKind, Model, ReadOptions
from dfcompile.frontend.onnx_model import program_of
from dfcompile.frontend.torch.python_module import running
from dfcompile.host.printable import named
from dfcompile.host.stages import stage, work_of
from dfcompile.records import replace

if TYPE_CHECKING:
    from dfcompile.frontend.torch.torch_model import TorchModel


def read_exported(path: Path, options: ReadOptions) -> Model:
    """Return the model in a ``.pt2`` file.

    Raises:
        UserError: PyTorch is missing, the file holds no exported program, or that cannot be exported to ONNX.
    """
    require_torch(path)
    from dfcompile.frontend.torch.torch_model import loaded_program, torch_model

    return exported_model(path.stem, torch_model(path, loaded_program(path), None), options)


EXPORTED_FILE = FileKind(".pt2", read_exported)

PACKAGES = ("torch", "onnxscript")
_PARTS = (3, 3, 1)  # PyTorch is imported, the model exported, and read: about, for what is shown of progress


def require_torch(path: Path) -> None:
    """Check that PyTorch and what it exports with are installed.

    Raises:
        UserError: one of them is missing or cannot be imported; the message has the command that installs it.
    """
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            hint = f"pip install {' '.join(PACKAGES)}"
            raise UserError(f"{path}: a PyTorch model needs {package}, which is not installed ({hint})")
    try:
        importlib.import_module("torch")
    except (ImportError, OSError) as error:
        raise UserError(f"{path}: a PyTorch model needs torch, which cannot be imported: {named(error)}") from error


def read_python(path: Path, options: ReadOptions) -> Model:
    """Return the PyTorch model that a Python file defines.

    The file has a function ``model()`` and a function ``example_inputs()``, or values of these names: an
    ``nn.Module``, and a tensor, a tuple of arguments or a dictionary of arguments by name; or a program that
    `torch.export` has made. ``dynamic_shapes``, if it is there, says which sizes vary; they are those of the example
    unless options say others. Weights and inputs are those after ``torch.manual_seed(0)``.

    Raises:
        UserError: PyTorch is missing; the file raises, lacks one of the two, or they are of other types; or the model
            cannot be exported.
    """
    with work_of(sum(_PARTS)) as work:
        running_parts, exporting_parts, importing_parts = _PARTS
        with work.part(running_parts):
            require_torch(path)
        with work.part(exporting_parts, is_unseen=True):
            found, exported, weights = _exported(path, is_read=options.reads_weights)
        with work.part(importing_parts):
            return model_of(path.stem, found, exported, weights, options)


def _exported(path: Path, *, is_read: bool) -> "tuple[TorchModel, onnx.ModelProto, Mapping[str, Array]]":
    """Return the model that a file defines, and what it is exported to; with values of weights if it needs them."""
    from dfcompile.frontend.torch.torch_model import defined_model, export_onnx, seed_torch
    from dfcompile.frontend.torch.unread_weights import UnreadWeights

    unread = UnreadWeights()
    seed_torch()
    with running(path) as module:
        try:
            found = defined_model(path, module, nullcontext() if is_read else unread)
            with stage("exporting it to ONNX"):
                return (found, *export_onnx(found))
        except Exception:
            if not unread.is_used:
                raise
    return _exported(path, is_read=True)


def exported_model(name: str, found: "TorchModel", options: ReadOptions) -> Model:
    """Return a PyTorch model as it is exported.

    Raises:
        UserError: PyTorch cannot export it, or as `program_of`.
    """
    from dfcompile.frontend.torch.torch_model import export_onnx

    with stage("exporting it to ONNX"):
        exported, weights = export_onnx(found)
    return model_of(name, found, exported, weights, options)


def model_of(
    name: str, found: "TorchModel", exported: onnx.ModelProto, weights: Mapping[str, Array], options: ReadOptions
) -> Model:
    """Return a model that PyTorch has exported; a size that varies is that of the example unless options say it.

    Raises:
        UserError: as `program_of`.
    """
    examples, sizes = found.examples, dict(options.dims)
    dims = {value.name: [dim.dim_param for dim in value.type.tensor_type.shape.dim] for value in exported.graph.input}
    said = {dim for name, names in dims.items() if name in options.shapes for dim in names}
    for names, example in zip(dims.values(), examples, strict=True):
        for dim, size in zip(names, example.shape, strict=True):
            if dim and dim not in said:
                sizes.setdefault(dim, size)
    program = program_of(name, exported, replace(options, dims=sizes), weights)
    shapes = [port.shape for port in program.inputs]
    for known in program.known_inputs:
        shapes.insert(known.position, known.value.shape)
    is_as_shown = all(shape == example.shape for shape, example in zip(shapes, examples, strict=True))
    return Model(program, found, examples if is_as_shown else ())


PYTHON_FILE = FileKind(".py", read_python)
