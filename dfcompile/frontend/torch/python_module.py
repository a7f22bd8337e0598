"""Running a user's Python file: in a fresh module, with errors that name its file and line."""

import importlib.util
import io
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from msgspec import Struct

from dfcompile.errors import DfcompileError, UserError, nearest
from dfcompile.host.printable import named

Result = TypeVar("Result")


class PythonModule(Struct, frozen=True):
    """A user's file that is being run."""

    path: Path
    module: ModuleType

    def value(self, name: str) -> object:
        """Return what the file defines under a name.

        Raises:
            UserError: it defines nothing of that name.
        """
        if not hasattr(self.module, name):
            hint = nearest(name, [known for known in vars(self.module) if not known.startswith("_")])
            found = f"no {name!r} is defined{hint if 'did you mean' in hint else ''}"
            raise UserError(f"{self.path}: {found} (a model file defines model() and example_inputs())")
        return getattr(self.module, name)


@contextmanager
def running(path: Path) -> Iterator[PythonModule]:
    """Run a file and give its module; the file's folder is importable, and prints go to stderr, within the context.

    Raises:
        UserError: the file cannot be parsed or raises.
    """
    folder = str(path.resolve().parent)
    name = f"model_file_{path.stem}"
    loader = SourceFileLoader(name, str(path.resolve()))
    specification = importlib.util.spec_from_loader(name, loader)
    assert specification is not None
    module = importlib.util.module_from_spec(specification)
    loaded = frozenset(sys.modules)
    caching = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    sys.modules[name] = module
    sys.path.insert(0, folder)
    try:
        with redirect_stdout(sys.stderr):
            guarded(path, lambda: loader.exec_module(module))
            yield PythonModule(path, module)
    finally:
        sys.dont_write_bytecode = caching
        sys.path.remove(folder)
        # Another model's file of the same name must not meet this one's neighbours.
        for fresh in [known for known in sys.modules if known not in loaded]:
            if fresh == name or (getattr(sys.modules[fresh], "__file__", None) or "").startswith(folder + "/"):
                del sys.modules[fresh]


@contextmanager
def silenced() -> Iterator[None]:
    """Keep what is printed and warned of in the body away from the user."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings(action="ignore"):
        yield


def guarded(path: Path, run: Callable[[], Result]) -> Result:
    """Return ``run()``, and turn whatever it raises into an error that names the user's line.

    Raises:
        UserError: it raises.
    """
    try:
        return run()
    except DfcompileError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(f"{path}{line_in(path, error)}: {named(error)}") from error


def line_in(path: Path, error: BaseException) -> str:
    """Return ``:12`` if line 12 of the file is the innermost one that raised, or nothing if none of it did."""
    if isinstance(error, SyntaxError) and error.filename == str(path.resolve()):
        return f":{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path.resolve())]
    return f":{lines[-1]}" if lines else ""
