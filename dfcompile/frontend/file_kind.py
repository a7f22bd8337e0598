"""A kind of model file: what reads files with a suffix."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from dfcompile.errors import UserError, VerificationError
from dfcompile.frontend.model import Model, ReadOptions
from dfcompile.plugins import faults_of


class FileKind(Struct, frozen=True):
    """How files with a suffix become models; a module-level value of this type in a plug-in is found.

    Attributes:
        suffix: such as ``.onnx``, in lower case.
        read: gives the model of a file that exists; raises UserErrors.
        content: what the file holds, where files of one suffix may hold different things; else empty.
        claims: whether a file that exists holds that; ``None`` of what has no other content.
        beside: gives the other files that a model is in, whose content with its own tells all of it; ``None``: it is
            code, which may look at anything.
    """

    suffix: str
    read: Callable[[Path, ReadOptions], Model]
    content: str = ""
    claims: Callable[[Path], bool] | None = None
    beside: Callable[[Path], tuple[Path, ...]] | None = None

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
