"""A kind of model file: what reads files with a suffix."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dfcompile.frontend.model import Model
from dfcompile.frontend.options import ReadOptions


@dataclass(frozen=True, slots=True)
class FileKind:
    """How files with a suffix become models; a module-level value of this type in a plug-in is found.

    Attributes:
        suffix: such as ``.onnx``, in lower case.
        read: gives the model of a file that exists; raises UserErrors.
    """

    suffix: str
    read: Callable[[Path, ReadOptions], Model]
