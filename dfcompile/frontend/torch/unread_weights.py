"""Large weights without values: reports need shapes and types alone, so 8 billion parameters take no memory.

They are PyTorch's fake tensors, which have a shape and a type and compute no values. A large tensor that would be drawn
at random, or not filled, is made as one; small tensors have values, and so have computed ones, such as masks.
"""

import copy
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx_ir
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

SMALLEST = 2**20  # elements of a fake tensor: drawing fewer takes almost no time
_ATEN = torch.ops.aten
_DRAWING = frozenset([_ATEN.empty.memory_format, _ATEN.rand.default, _ATEN.randn.default])


class ValuesNeededError(Exception):
    """Something depends on the values of a weight that has none."""


class UnreadWeights(TorchDispatchMode):  # type: ignore[no-untyped-call]  # PyTorch's own
    """A context in which large real tensors that are created unfilled or random become fake tensors.

    Attributes:
        is_used: whether any did.
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
        options = dict(kwargs or {})
        device = options.get("device")
        if func in _DRAWING and (device is None or device == torch.device("cpu")) and _is_large(args[0], options):
            self.is_used = True
            with self._fake:
                return self._forgotten(func(*args, **options))
        are_fake = [isinstance(value, FakeTensor) for value in args]
        if not any(are_fake):
            return func(*args, **options)
        arguments = func._schema.arguments  # noqa: SLF001  # no public attribute tells which arguments are written
        if not all(is_fake for is_fake, argument in zip(are_fake, arguments, strict=False) if argument.is_write):
            raise ValuesNeededError(f"{func} makes values of those of a weight")
        return self._forgotten(func(*args, **options))

    def _forgotten(self, result: object) -> object:
        """Return a result after the mode forgot it: `Module.to` replaces only tensors to which nothing else refers."""
        self._fake.fake_tensor_converter.meta_converter.tensor_memo.clear()
        return result


def _fake_mode() -> FakeTensorMode:
    return FakeTensorMode(allow_non_fake_inputs=True)


def _is_large(shape: object, options: Mapping[str, object]) -> bool:
    dtype = options.get("dtype") or torch.get_default_dtype()
    is_real = isinstance(dtype, torch.dtype) and dtype.is_floating_point
    return is_real and isinstance(shape, list | tuple) and math.prod(map(int, shape)) >= SMALLEST


def is_unread(module: torch.nn.Module) -> bool:
    """Whether a module has fake tensors, which have no values."""
    return any(isinstance(tensor, FakeTensor) for tensor in module.state_dict().values())


def without_meta_tensors(module: torch.nn.Module) -> torch.nn.Module:
    """Return a copy with fake tensors for those on the meta device, sharing all others; itself if it has none."""
    tensors = [*module.parameters(), *module.buffers()]
    if not any(tensor.is_meta for tensor in tensors):
        return module
    fake = _fake_mode()
    return copy.deepcopy(module, {id(tensor): _off_meta(tensor, fake) for tensor in tensors})


def _off_meta(tensor: torch.Tensor, fake: FakeTensorMode) -> torch.Tensor:
    """Return a fake tensor on the processor for one on the meta device, any other tensor as it is."""
    if not tensor.is_meta:
        return tensor
    with fake:
        faked = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
    return torch.nn.Parameter(faked, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else faked


def give_stand_ins(initializers: Iterable[onnx_ir.Value], parameters: Iterable[str] | None) -> None:
    """Give fake weights of an exported graph numbers as values, which take no memory.

    Args:
        initializers: of the graph.
        parameters: names of the weights that may be fake, if they are large; ``None``: all may.

    Raises:
        ValuesNeededError: another weight is fake, so it was computed from fake ones.
    """
    allowed = None if parameters is None else frozenset(parameters)
    for number, value in enumerate(initializers):
        tensor = value.const_value
        if tensor is None or not isinstance(getattr(tensor, "raw", None), FakeTensor):
            continue
        shape = tuple(tensor.shape.numpy())
        if allowed is not None and (value.name not in allowed or math.prod(shape) < SMALLEST):
            raise ValuesNeededError(f"{value.name} is computed of weights")
        numbers = _stand_in(shape, tensor.dtype.numpy(), number)
        value.const_value = onnx_ir.Tensor(numbers, dtype=tensor.dtype, name=value.name)


def _stand_in(shape: tuple[int, ...], dtype: np.dtype[np.generic], seed: int) -> np.ndarray:
    """Return a read-only array whose element ``[i, j, …]`` is number ``i + j + …`` of a few that are drawn at random.

    Its elements differ as those of weights do, so sums, differences and quotients of them are as usual, and defined.
    """
    drawn = np.random.default_rng(seed).uniform(-1, 1, sum(shape) + 1).astype(dtype)
    return np.lib.stride_tricks.as_strided(drawn, shape, (drawn.itemsize,) * len(shape), writeable=False)
