"""The model as read: its program, and what runs the original for comparison; what reads a file, and its options."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from dfcompile.errors import UserError, VerificationError
from dfcompile.frontend.element_kind import POWERS_OF_TWO, element_kind
from dfcompile.frontend.program import Port, Program
from dfcompile.options import FixedInput
from dfcompile.plugins import faults_of
from dfcompile.records import replace

Array: TypeAlias = npt.NDArray[np.generic]


class ReadOptions(Struct, frozen=True):
    """What reading a model needs to be told.

    Attributes:
        shapes: shape of an input by its name, for inputs with symbolic dimensions.
        dims: size of a symbolic dimension by its name, wherever it stands.
        fixed_inputs: value of an input by its name, which it has in every run.
        operators: types of ONNX operators that can be lowered; others are refused before anything is done. ``None``:
            whoever lowers them finds out.
        reads_weights: whether values of weights count, as they do where the model is run; else large ones of a PyTorch
            file need not be made.
    """

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    operators: frozenset[str] | None = None
    fixed_inputs: Mapping[str, FixedInput] = field(default_factory=dict)
    reads_weights: bool = True


class Answer(Struct, frozen=True, eq=False):
    """What the user's original computes.

    Attributes:
        outputs: in the model's order.
        source: who computed it.
        hint: what to do if it is doubted.
    """

    outputs: tuple[Array, ...]
    source: str
    hint: str


# Runs the original: outputs for all inputs, in the model's order.
Reference: TypeAlias = Callable[[Sequence[Array]], Answer]


class Model(Struct, frozen=True):
    """A model that was read.

    Attributes:
        program: of level 0.
        reference: runs the original: PyTorch itself, onnxruntime, or ONNX's reference implementation.
        examples: the user's inputs in the model's order, read-only; empty if the file has none.
    """

    program: Program
    reference: Reference
    examples: tuple[Array, ...] = ()

    def example_feeds(self, seed: int) -> tuple[Array, ...]:
        """Return one input per port: the user's examples, else random values that depend on the seed alone.

        Random floats are standard normal; integers are 0 or 1, which are valid indices of nearly everything.
        """
        if self.examples:
            known = {each.position for each in self.program.known_inputs}
            return tuple(value for at, value in enumerate(self.examples) if at not in known)
        generator = np.random.default_rng(seed)
        return tuple(_random(port, generator) for port in self.program.inputs)


def reference_answer(model: Model, inputs: Sequence[Array]) -> Answer:
    """Return what the user's original computes for these inputs, as far as it has elements.

    Args:
        model: the model.
        inputs: one array for each of ``model.program.inputs``, in that order.

    Raises:
        UserError: an input has another shape or element type than its port, or the original cannot be run.
    """
    ports = model.program.inputs
    if len(inputs) != len(ports):
        raise UserError(f"model {model.program.name!r}: {len(inputs)} inputs against {len(ports)}")
    for port, value in zip(ports, inputs, strict=True):
        found = (str(value.dtype), value.shape)
        if found != (port.dtype, port.shape):
            raise UserError(f"input {port.name!r}: {found[0]} {found[1]} against {port.dtype} {port.shape}")
    every = list(inputs)
    for known in model.program.known_inputs:
        every.insert(known.position, known.value)
    answer = model.reference(every)
    return replace(answer, outputs=tuple(value for value in answer.outputs if value.size))


def _random(port: Port, generator: np.random.Generator) -> Array:
    dtype, kind = np.dtype(port.dtype), element_kind(port.dtype)
    if kind in "iub":
        return generator.integers(0, 2, port.shape).astype(dtype)
    if kind == "c":
        return (generator.standard_normal(port.shape) + 1j * generator.standard_normal(port.shape)).astype(dtype)
    drawn = generator.standard_normal(port.shape)
    return (np.exp2(np.rint(drawn)) if port.dtype == POWERS_OF_TWO else drawn).astype(dtype)


class FileKind(Struct, frozen=True):
    """How files with a suffix become models; a module-level value of this type in a plug-in is found.

    Attributes:
        suffix: such as ``.onnx``, in lower case.
        read: gives the model of a file that exists; raises UserErrors.
        content: what the file holds, where files of one suffix may hold different things; else empty.
        claims: whether a file that exists holds that; ``None`` of what has no other content.
    """

    suffix: str
    read: Callable[[Path, ReadOptions], Model]
    content: str = ""
    claims: Callable[[Path], bool] | None = None

    def __post_init__(self) -> None:
        if bool(self.content) is not (self.claims is not None):
            raise ValueError(f"kind of model file {self.suffix!r}: found one of content and claims against both")
        if not self.suffix.startswith(".") or self.suffix != self.suffix.lower():
            raise ValueError(f"kind of model file {self.suffix!r}: found this suffix against one such as '.onnx'")

    @property
    def name(self) -> str:
        """The suffix, and the content if that is not told by it."""
        return f"{self.suffix} ({self.content})" if self.content else self.suffix

    @property
    def module(self) -> str:
        """Import path of the module that reads files of this kind."""
        return self.read.__module__

    def is_of(self, path: Path) -> bool:
        """Whether a file that exists holds the content of this kind.

        Raises:
            UserError: the file cannot be read.
            PluginError: a plug-in's test raises anything else.
        """
        with self._faults(path):
            return self.claims is not None and bool(self.claims(path))

    def model(self, path: Path, options: ReadOptions) -> Model:
        """Return the model in a file.

        Raises:
            UserError: the file cannot be read, or is no model.
            PluginError: a plug-in's reader raises anything else, or returns no model.
        """
        with self._faults(path):
            found = self.read(path, options)
            if not isinstance(found, Model):
                raise VerificationError(f"{path}: found {type(found).__name__} against a Model")
            return found

    @contextmanager
    def _faults(self, path: Path) -> Iterator[None]:
        """Name the file, or the plug-in, in errors of the body."""
        with faults_of("front end", f"{self.module}.{self.read.__name__}"):
            try:
                yield
            except OSError as error:
                raise UserError(f"{path}: {error.strerror or error}") from error
