"""PyTorch models: the one file that imports torch."""

import contextlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Iterator, Mapping, MutableMapping, Sequence, Set
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import onnx
from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.frontend.model import Array
from dfcompile.frontend.onnx.draft import read_only
from dfcompile.frontend.onnx.one_line import named
from dfcompile.frontend.torch.python_module import line_in

if TYPE_CHECKING:
    import onnx_ir
    import torch

OPSET = 18
PACKAGES = ("torch", "onnxscript")
SHARED_TYPES = frozenset({"BFLOAT16", "BOOL", "DOUBLE", "FLOAT", "FLOAT16", "INT16", "INT32", "INT64", "INT8", "UINT8"})
OWN_TYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")  # of ml_dtypes, which PyTorch calls the same
_BITS = MappingProxyType({1: "uint8", 2: "int16"})  # that hold them, by their number of bytes
_SEED = 0


class TorchModel(Struct, frozen=True):
    """A PyTorch module in inference mode, with inputs that it takes."""

    path: Path
    module: "torch.nn.Module"
    inputs: "tuple[torch.Tensor, ...]"

    @property
    def examples(self) -> tuple[Array, ...]:
        """The inputs as read-only arrays."""
        return tuple(_array(value) for value in self.inputs)

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Return the module's outputs in the order of its result, read-only.

        Raises:
            UserError: the module raises, or its result holds something else than tensors.
        """
        import torch

        try:
            with torch.no_grad():
                result = self.module(*map(_tensor, inputs))
        except Exception as error:
            raise UserError(_failure(self.path, "the model cannot be run", error)) from error
        return tuple(_array(value) for value in _tensors(self.path, result))


def require_torch(path: Path) -> None:
    """Check that PyTorch and what it exports with are installed.

    Raises:
        UserError: one of them is missing or cannot be imported; the message has the command that installs it.
    """
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise UserError(
                f"{path}: a PyTorch model needs {package}, which is not installed (pip install {' '.join(PACKAGES)})"
            )
    try:
        import torch
    except (ImportError, OSError) as error:
        raise UserError(f"{path}: a PyTorch model needs torch, which cannot be imported: {named(error)}") from error
    del torch


def seed_torch() -> None:
    """Make the weights and inputs that come next the same in each run."""
    import torch

    torch.manual_seed(_SEED)


def is_module(value: object) -> bool:
    """Return whether a value is a PyTorch module (which can be called, but is no function that returns one)."""
    import torch

    return isinstance(value, torch.nn.Module)


@contextlib.contextmanager
def inference_mode(module: object) -> Iterator[None]:
    """Have a module in inference mode within the body; each part of it is in its own mode again behind it."""
    import torch

    assert isinstance(module, torch.nn.Module)
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, is_training in modes:
            part.training = is_training


def torch_model(path: Path, module: object, inputs: object) -> TorchModel:
    """Return a module and its inputs as a model in inference mode.

    Args:
        path: of the user's file, for errors.
        module: an ``nn.Module``.
        inputs: a tensor or a tuple of tensors.

    Raises:
        UserError: one of the two is of another type.
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        raise UserError(f"{path}: model() gives {_type_name(module)} against an nn.Module")
    tensors = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    for position, value in enumerate(tensors):
        if not isinstance(value, torch.Tensor):
            raise UserError(
                f"{path}: example_inputs() gives {_type_name(value)} at position {position} against a tensor "
                "(give a tensor or a tuple of tensors)"
            )
    return TorchModel(path, module.eval(), tensors)


def export_onnx(model: TorchModel) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Return the model as PyTorch exports it to ONNX, and apart from it its weights, in the memory of the module.

    A weight of an element type that numpy does not have stays in the exported model.

    Raises:
        UserError: PyTorch cannot export it; the message is the exporter's.
    """
    import torch

    try:
        with _silence(), torch.no_grad():
            exported = torch.onnx.export(
                model.module, model.inputs, dynamo=True, opset_version=OPSET, external_data=False, verbose=False
            )
    except Exception as error:
        # The exporter's own first line only says in which of its steps it failed.
        cause = error.__cause__ or error
        raise UserError(_failure(model.path, "the model cannot be exported to ONNX", cause)) from error
    assert exported is not None
    weights = _take_weights(exported.model.graph.initializers, _narrow_names(model.module))
    proto = exported.model_proto
    assert isinstance(proto, onnx.ModelProto)
    if len(proto.graph.input) != len(model.inputs):
        raise UserError(
            f"{model.path}: example_inputs() gives {len(model.inputs)} tensors against {len(proto.graph.input)} inputs "
            "of the exported model"
        )
    return proto, weights


def _narrow_names(module: "torch.nn.Module") -> frozenset[str]:
    """Return the names of the weights that are bfloat16."""
    import torch

    return frozenset(name for name, value in module.state_dict().items() if value.dtype is torch.bfloat16)


def _take_weights(initializers: "MutableMapping[str, onnx_ir.Value]", narrow: Set[str]) -> dict[str, Array]:
    """Take the weights out of an exported graph: serialised they would be there twice.

    Args:
        initializers: of the graph.
        narrow: names of weights that are bfloat16 in the module. The exporter leaves those in single precision that it
            has joined with others, such as those of a convolution with the normalisation behind it.
    """
    weights: dict[str, Array] = {}
    for name, value in list(initializers.items()):
        held = value.const_value
        if held is not None and held.dtype.name in SHARED_TYPES:
            array = np.asarray(held.numpy()).view()
            if name in narrow and array.dtype == np.float32:
                array = array.astype("bfloat16")
            weights[name] = read_only(array)
            del initializers[name]
    return weights


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep the exporter's prints, warnings and log lines away from the user."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(action="ignore"),
        ):
            yield
    finally:
        logging.disable(disabled)


def _failure(path: Path, what: str, error: BaseException) -> str:
    return f"{path}{line_in(path, error)}: {what}: {named(error)}"


def _tensors(path: Path, result: object) -> "tuple[torch.Tensor, ...]":
    import torch

    if isinstance(result, torch.Tensor):
        return (result,)
    if isinstance(result, Mapping):
        return tuple(tensor for value in result.values() for tensor in _tensors(path, value))
    if isinstance(result, tuple | list):
        return tuple(tensor for value in result for tensor in _tensors(path, value))
    raise UserError(f"{path}: the model returns {_type_name(result)} against tensors")


def _tensor(value: Array) -> "torch.Tensor":
    import torch

    if value.dtype.name in OWN_TYPES:  # numpy's interface has no name for these
        bits = np.array(value).view(_BITS[value.dtype.itemsize])
        return torch.from_numpy(bits).view(getattr(torch, value.dtype.name))
    return torch.from_numpy(np.array(value))


def _array(value: "torch.Tensor") -> Array:
    import torch

    found = value.detach().cpu()
    own = next((name for name in OWN_TYPES if found.dtype is getattr(torch, name)), None)
    if own is None:
        return read_only(np.array(found.numpy()))
    bits = getattr(torch, _BITS[found.element_size()])
    return read_only(np.array(found.view(bits).numpy()).view(own))


def _type_name(value: object) -> str:
    return f"a value of type {type(value).__name__}"
