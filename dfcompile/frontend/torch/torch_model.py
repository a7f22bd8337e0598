"""PyTorch models: the one file that imports torch, which takes seconds; who needs it imports it inside a function."""

import contextlib
import inspect
import logging
from collections.abc import Iterator, Mapping, MutableMapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import torch
from msgspec import Struct
from torch.utils import _pytree

from dfcompile.errors import UserError
from dfcompile.frontend.model import Answer, Array
from dfcompile.frontend.onnx.draft import read_only
from dfcompile.frontend.torch.python_module import PythonModule, guarded, line_in, silenced
from dfcompile.frontend.torch.unread_weights import ValuesNeededError, give_stand_ins, is_unread, without_meta_tensors
from dfcompile.host.printable import named

if TYPE_CHECKING:
    import onnx_ir

OPSET = 18
SHARED_TYPES = frozenset({"BFLOAT16", "BOOL", "DOUBLE", "FLOAT", "FLOAT16", "INT16", "INT32", "INT64", "INT8", "UINT8"})
OWN_TYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")  # of ml_dtypes, which PyTorch calls the same
_BITS = {1: "uint8", 2: "int16"}  # that hold them, by their number of bytes
_SEED = 0
_INPUTS = "give a tensor, a tuple of arguments, or a dictionary of arguments by name"
_SCRIPTED = "give the module that it was made of"
_EXPORT_HINTS: Mapping[str, str] = {  # by what the exporter's message holds
    "data-dependent": "what is done depends on a tensor's value: select with torch.where, or give the branch alone",
    "transformers.cache_utils": "give 'use_cache': False among the inputs, and the cache is left out",
    "grouped_mm": "of transformers' experts: model.set_experts_implementation('batched_mm') can be exported",
}


class TorchModel(Struct, frozen=True):
    """A PyTorch module in inference mode, with inputs that it takes.

    Attributes:
        path: of the user's file, for errors.
        module: what is run.
        exported: what is exported: the module, or the program that it is of.
        inputs: arguments by position, then those by name, as they are nested; a value that is no tensor is the same in
            every run.
        dynamic_shapes: which sizes of the inputs vary, as `torch.export.export` takes it.
        is_meta: it was given without the values of some tensors.
    """

    path: Path
    module: torch.nn.Module
    exported: torch.nn.Module | torch.export.ExportedProgram
    inputs: tuple[tuple[object, ...], Mapping[str, object]]
    dynamic_shapes: dict[str, object] | tuple[object, ...] | list[object] | None = None
    is_meta: bool = False

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """The tensors of the inputs, in order."""
        return tuple(leaf for leaf in _pytree.tree_leaves(self.inputs) if isinstance(leaf, torch.Tensor))

    @property
    def examples(self) -> tuple[Array, ...]:
        """These as read-only arrays."""
        return tuple(map(_array, self.tensors))

    def __call__(self, inputs: Sequence[Array]) -> Answer:
        """Run the module; its outputs are in the order of its result, read-only.

        Raises:
            UserError: the module raises or has weights without values, or its result holds something else than tensors.
        """
        if is_unread(self.module):
            raise UserError(f"{self.path}: weights without values against those that a run needs")
        try:
            left = iter(inputs)
            leaves, structure = _pytree.tree_flatten(self.inputs)
            leaves = [_tensor(next(left)) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            positional, named_ones = _pytree.tree_unflatten(leaves, structure)
            with torch.no_grad():
                result = self.module(*positional, **named_ones)
        except Exception as error:
            raise UserError(_failure(self.path, "the model cannot be run", error)) from error
        return Answer(tuple(map(_array, _tensors(self.path, result))), "PyTorch", "please report it")


def seed_torch() -> None:
    """Make the weights and inputs that come next the same in each run."""
    torch.manual_seed(_SEED)


def loaded_program(path: Path) -> torch.export.ExportedProgram:
    """Return the program that `torch.export.save` has written to a file.

    Raises:
        UserError: the file holds none.
    """
    try:
        with _silence():
            return torch.export.load(path)
    except Exception as error:
        raise UserError(f"{path}: no program of torch.export: {named(error)}") from error


@contextlib.contextmanager
def inference_mode(module: object) -> Iterator[None]:
    """Have a module in inference mode within the body; each part of it is in its own mode again behind it."""
    assert isinstance(module, torch.nn.Module)
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, is_training in modes:
            part.training = is_training


def defined_model(path: Path, module: PythonModule, making: AbstractContextManager[object]) -> TorchModel:
    """Return the model that a Python file defines by ``model`` and ``example_inputs``, values or functions.

    Args:
        path: of the file.
        module: that it is.
        making: context in which the model is made.

    Raises:
        UserError: one of them is missing, raises, or is of another type.
    """
    with making:
        model = _value(module, "model")
    has_inputs = not isinstance(model, torch.export.ExportedProgram) or hasattr(module.module, "example_inputs")
    inputs = _value(module, "example_inputs") if has_inputs else None
    return torch_model(path, model, inputs, getattr(module.module, "dynamic_shapes", None))


def _value(module: PythonModule, name: str) -> object:
    value = module.value(name)
    is_model = isinstance(value, torch.nn.Module | torch.export.ExportedProgram)  # which can be called as well
    return guarded(module.path, value) if callable(value) and not is_model else value


def torch_model(path: Path, model: object, inputs: object, dynamic_shapes: object = None) -> TorchModel:
    """Return a module and its inputs as a model in inference mode.

    Args:
        path: of the user's file, for errors.
        model: an ``nn.Module``, or a program that `torch.export` has made.
        inputs: a tensor, a tuple of arguments, or a dictionary of arguments by name; of a program ``None`` are those
            that it was exported with.
        dynamic_shapes: which sizes of the inputs vary, as `torch.export.export` takes it; a program knows its own.

    Raises:
        UserError: one of them is of another type, or names an argument that the module does not take.
    """
    if isinstance(model, torch.export.ExportedProgram):
        return _program_model(path, model, inputs)
    if isinstance(model, torch.jit.ScriptModule):
        raise UserError(f"{path}: model: found a TorchScript module against an nn.Module ({_SCRIPTED})")
    if not isinstance(model, torch.nn.Module):
        raise UserError(f"{path}: model: found {_type_name(model)} against an nn.Module")
    module, arguments = without_meta_tensors(model.eval()), _arguments(path, model, inputs)
    if not isinstance(dynamic_shapes, dict | tuple | list | None):
        raise UserError(f"{path}: dynamic_shapes is {_type_name(dynamic_shapes)} against a dictionary or a tuple")
    if isinstance(dynamic_shapes, dict) and len(dynamic_shapes) == len(arguments[0]) == 1:
        dynamic_shapes = tuple(dynamic_shapes.values())  # whatever the module calls its one argument
    return _checked(TorchModel(path, module, module, arguments, dynamic_shapes, module is not model))


def _program_model(path: Path, program: torch.export.ExportedProgram, inputs: object) -> TorchModel:
    module = program.module()
    if inputs is not None:
        found = _checked(TorchModel(path, module, program, _arguments(path, module, inputs)))
        try:
            found(found.examples)
        except UserError as error:
            cause = named(error.__cause__ or error)
            raise UserError(f"{path}: example_inputs: {cause} (the program was exported for other inputs)") from error
        return found
    if program.example_inputs is None:
        raise UserError(f"{path}: an exported program without its example inputs (give example_inputs)")
    positional, named_ones = program.example_inputs
    return _checked(TorchModel(path, module, program, (tuple(positional), named_ones)))


def _arguments(path: Path, module: torch.nn.Module, inputs: object) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return arguments by position and by name, these in the order of the signature, as an exported graph has them."""
    if not isinstance(inputs, Mapping):
        return (tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)), {}
    signature = inspect.signature(module.forward)
    try:
        signature.bind_partial(**inputs)
    except TypeError as error:
        taken = ", ".join(signature.parameters)
        raise UserError(f"{path}: example_inputs: {error} (the module takes {taken})") from error
    return (), {name: inputs[name] for name in dict.fromkeys((*signature.parameters, *inputs)) if name in inputs}


def _checked(model: TorchModel) -> TorchModel:
    for position, leaf in enumerate(_pytree.tree_leaves(model.inputs)):
        if not isinstance(leaf, torch.Tensor | bool | int | float | str | None):
            found = f"example_inputs: found {_type_name(leaf)} at position {position}"
            raise UserError(f"{model.path}: {found} against a tensor ({_INPUTS})")
    if not model.tensors:
        raise UserError(f"{model.path}: example_inputs: found no tensor ({_INPUTS})")
    return model


def export_onnx(model: TorchModel) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Return the model as PyTorch exports it to ONNX, and apart from it its weights, in the memory of the module.

    A weight of an element type that numpy does not have stays in the exported model.

    Raises:
        UserError: PyTorch cannot export it; the message is the exporter's.
        ValuesNeededError: what is exported depends on values of weights that have none.
    """
    try:
        exported = _exported(model)
    except ValuesNeededError:
        raise
    except Exception as error:
        # The exporter's own first line only says in which of its steps it failed.
        cause = error.__cause__ or error
        message = _failure(model.path, "the model cannot be exported to ONNX", cause)
        hint = next((hint for sign, hint in _EXPORT_HINTS.items() if sign in str(cause)), None)
        raise UserError(message if hint is None else f"{message} ({hint})") from error
    assert exported is not None
    narrow = {name for name, value in model.module.state_dict().items() if value.dtype is torch.bfloat16}
    weights = _take_weights(exported.model.graph.initializers, narrow)
    proto = exported.model_proto
    assert isinstance(proto, onnx.ModelProto)
    if len(proto.graph.input) != len(model.tensors):
        wanted = f"{len(proto.graph.input)} inputs of the exported model"
        raise UserError(f"{model.path}: example_inputs: found {len(model.tensors)} tensors against {wanted}")
    return proto, weights


def _exported(model: TorchModel, *, is_again: bool = False) -> torch.onnx.ONNXProgram | None:
    positional, named_ones = model.inputs
    if positional and isinstance(positional[-1], dict):  # which the exporter would take for arguments by name
        positional = (*positional, {})
    unread = is_unread(model.module)
    with _silence(), torch.no_grad():
        try:
            program = torch.onnx.export(
                model.exported, positional, kwargs=dict(named_ones), dynamic_shapes=model.dynamic_shapes,
                dynamo=True, opset_version=OPSET, external_data=False, verbose=False, optimize=not unread,
            )  # fmt: skip
            if unread and program is not None:
                parameters = model.module.named_parameters(remove_duplicate=False)  # shared ones by all their names
                names = None if model.is_meta else [name for name, _ in parameters]
                give_stand_ins(program.model.graph.initializers.values(), names)
                program.optimize()
        except torch.onnx.errors.OnnxExporterError:
            if is_again or not _registered_results(model):
                raise
            program = None
    return _exported(model, is_again=True) if program is None else program


def _registered_results(model: TorchModel) -> bool:
    """Tell `torch.export` of the dataclasses that a module returns, those that it refuses; return whether there are."""
    result = model.module(*model.inputs[0], **model.inputs[1])
    found = {type(leaf) for leaf in _pytree.tree_leaves(result) if is_dataclass(leaf)}
    unknown = found - set(_pytree.SUPPORTED_NODES)
    for kind in unknown:
        torch.export.register_dataclass(kind)
    return bool(unknown)


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
        with silenced():
            yield
    finally:
        logging.disable(disabled)


def _failure(path: Path, what: str, error: BaseException) -> str:
    return f"{path}{line_in(path, error)}: {what}: {named(error)}"


def _tensors(path: Path, result: object) -> tuple[torch.Tensor, ...]:
    if isinstance(result, torch.Tensor):
        return (result,)
    if isinstance(result, Mapping):
        result = [*result.values()]
    elif is_dataclass(result):
        result = [getattr(result, field.name) for field in fields(result)]
    if isinstance(result, tuple | list):
        return tuple(tensor for value in result for tensor in _tensors(path, value))
    if result is None:
        return ()
    raise UserError(f"{path}: the model returns {_type_name(result)} against tensors")


def _tensor(value: Array) -> torch.Tensor:
    if value.dtype.name in OWN_TYPES:  # numpy's interface has no name for these
        bits = np.array(value).view(_BITS[value.dtype.itemsize])
        return torch.from_numpy(bits).view(getattr(torch, value.dtype.name))
    return torch.from_numpy(np.array(value))


def _array(value: torch.Tensor) -> Array:
    found = value.detach().cpu()
    own = next((name for name in OWN_TYPES if found.dtype is getattr(torch, name)), None)
    if own is None:
        return read_only(np.array(found.numpy()))
    return read_only(np.array(found.view(getattr(torch, _BITS[found.element_size()])).numpy()).view(own))


def _type_name(value: object) -> str:
    return f"a value of type {type(value).__name__}"
