"""Reading a model: a file of any known kind; an ONNX model, a PyTorch module or an exported one that is in memory."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from dfcompile.errors import UserError
from dfcompile.frontend.model import FileKind, Model, ReadOptions
from dfcompile.plugins import PluginKind

if TYPE_CHECKING:
    import onnx
    import torch  # noqa: TID251  # for its types alone

DAG_SUFFIXES = (".dag", ".json")
_WEIGHTS_SUFFIXES = (".pt", ".pth", ".ts", ".torchscript", ".bin", ".ckpt", ".safetensors")
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"

FILE_KINDS: Final = PluginKind(
    "kind of model file", FileKind, "dfcompile.frontend.file_kinds", "dfcompile.frontend", plural="kinds of model files"
)

_NO_OPTIONS = ReadOptions()

ReadModel: TypeAlias = Callable[[Path, ReadOptions], Model]


def read_model(path: Path, options: ReadOptions = _NO_OPTIONS) -> Model:
    """Return the model in a file: ``.py`` runs as Python and is exported, ``.onnx`` is read as data.

    Raises:
        UserError: there is no such file, its kind is not known, or it holds no model that can be compiled.
        RegistrationError: two plug-ins read files of one suffix.
    """
    model = _found_kind(path).model(path, options)
    fixed = {each.name for each in model.program.known_inputs}
    for name in options.fixed_inputs:
        if name not in fixed:
            raise UserError(f"{path}: input {name!r}: a fixed value against a kind of file whose inputs all vary")
    return model


def _found_kind(path: Path) -> FileKind:
    """Return the kind of a file that exists.

    Raises:
        UserError: there is no such file, its kind is not known, or several kinds have its content.
        RegistrationError: two plug-ins read files of one suffix.
    """
    known = FILE_KINDS.collect()
    kinds = [kind for kind in known.by_name.values() if kind.suffix == path.suffix.lower()]
    if not kinds:
        found = repr(path.suffix) if path.suffix else "no suffix"
        hint = ""
        if path.suffix.lower() in DAG_SUFFIXES:
            hint = "; a canonical DAG is given to 'dfcompile schedule'"
        elif path.suffix.lower() in _WEIGHTS_SUFFIXES:
            hint = "; TorchScript and weights: give a .py with model() and example_inputs(), or a .pt2"
        suffixes = dict.fromkeys(kind.suffix for kind in known.by_name.values())
        broken = "".join(f"; {fault}" for fault in known.faults)
        raise UserError(f"{path}: {found} against a model file ({', '.join(suffixes)}{hint}{broken})")
    if not path.exists():
        raise UserError(f"{path}: no such file")
    if not path.is_file():
        raise UserError(f"{path}: {'a folder' if path.is_dir() else 'no regular file'} against a model file")
    with path.open("rb") as file:
        if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
            raise UserError(f"{path}: a pointer of Git LFS against the file that it stands for (git lfs pull)")
    # The kind whose content the file has, else the one that has no other content.
    claimed = [kind for kind in kinds if kind.is_of(path)]
    one = claimed or [kind for kind in kinds if kind.claims is None]
    if len(one) != 1:
        names = ", ".join(kind.name for kind in one or kinds)
        raise UserError(f"{path}: holds {'several' if one else 'none'} of {names} against one")
    return one[0]


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
