"""Large weights without values, which is all that a report needs: a module of 8 billion parameters takes no memory.

PyTorch's fake tensors have a shape and a type, and compute no values. Tensors whose values would be drawn are made so.
Small tensors have values, and so have those that are computed, such as masks.
"""

import copy
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx_ir
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

SMALLEST = 2**20  # elements: to draw fewer takes next to no time
_ATEN = torch.ops.aten
_DRAWING = frozenset([_ATEN.empty.memory_format, _ATEN.rand.default, _ATEN.randn.default])


class ValuesNeededError(Exception):
    """Something depends on the values of a weight that has none."""


class UnreadWeights(TorchDispatchMode):  # type: ignore[no-untyped-call]  # PyTorch's own
    """A context: large tensors of real numbers that begin without values, or with random ones, never get any in it.

    Attributes:
        is_used: whether there are such tensors.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.is_used = False
        self._fake = _fake_mode()

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        given = dict(kwargs or {})
        device = given.get("device")
        if func in _DRAWING and (device is None or device == torch.device("cpu")) and _is_large(args[0], given):
            self.is_used = True
            with self._fake:
                return self._unremembered(func(*args, **given))
        of_fake = [isinstance(value, FakeTensor) for value in args]
        if not any(of_fake):
            return func(*args, **given)
        arguments = func._schema.arguments  # noqa: SLF001  # nothing public says what an operator writes
        if not all(is_fake for is_fake, each in zip(of_fake, arguments, strict=False) if each.is_write):
            raise ValuesNeededError(f"{func} makes values of those of a weight")
        return self._unremembered(func(*args, **given))

    def _unremembered(self, result: object) -> object:
        """Let the mode forget fake tensors: `Module.to` exchanges only those that nothing refers to."""
        self._fake.fake_tensor_converter.meta_converter.tensor_memo.clear()
        return result


def _fake_mode() -> FakeTensorMode:
    return FakeTensorMode(allow_non_fake_inputs=True)


def _is_large(shape: object, given: Mapping[str, object]) -> bool:
    dtype = given.get("dtype") or torch.get_default_dtype()
    is_real = isinstance(dtype, torch.dtype) and dtype.is_floating_point
    return is_real and isinstance(shape, list | tuple) and math.prod(map(int, shape)) >= SMALLEST


def is_unread(module: torch.nn.Module) -> bool:
    """Whether some tensors of a module have no values."""
    return any(isinstance(tensor, FakeTensor) for tensor in module.state_dict().values())


def without_meta_tensors(module: torch.nn.Module) -> torch.nn.Module:
    """Return a module whose tensors on the meta device are fake ones on the processor; itself if it has none.

    Others are shared with the module.
    """
    tensors = [*module.parameters(), *module.buffers()]
    if not any(tensor.is_meta for tensor in tensors):
        return module
    fake = _fake_mode()
    return copy.deepcopy(module, {id(tensor): _off_meta(tensor, fake) for tensor in tensors})


def _off_meta(tensor: torch.Tensor, fake: FakeTensorMode) -> torch.Tensor:
    if not tensor.is_meta:
        return tensor
    with fake:
        made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
    return torch.nn.Parameter(made, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else made


def give_stand_ins(initializers: Iterable[onnx_ir.Value], parameters: Iterable[str] | None) -> None:
    """Let weights of an exported graph that have no values have numbers in their place, which take no memory.

    Args:
        initializers: of the graph.
        parameters: names of those that may be without values, if they are large; ``None``: all.

    Raises:
        ValuesNeededError: another one has none.
    """
    drawn = None if parameters is None else frozenset(parameters)
    for number, value in enumerate(initializers):
        tensor = value.const_value
        if tensor is None or not isinstance(getattr(tensor, "raw", None), FakeTensor):
            continue
        shape = tuple(tensor.shape.numpy())
        if drawn is not None and (value.name not in drawn or math.prod(shape) < SMALLEST):
            raise ValuesNeededError(f"{value.name} is computed of weights")
        numbers = _stand_in(shape, tensor.dtype.numpy(), number)
        value.const_value = onnx_ir.Tensor(numbers, dtype=tensor.dtype, name=value.name)


def _stand_in(shape: tuple[int, ...], dtype: np.dtype[np.generic], seed: int) -> np.ndarray:
    """Return a read-only array in which element ``[i, j, …]`` is number ``i + j + …`` of some that are drawn.

    So sums, differences and quotients of its elements are those of weights, and nowhere undefined.
    """
    drawn = np.random.default_rng(seed).uniform(-1, 1, sum(shape) + 1).astype(dtype)
    return np.lib.stride_tricks.as_strided(drawn, shape, (drawn.itemsize,) * len(shape), writeable=False)
