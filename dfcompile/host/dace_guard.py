"""Guards the import of DaCe: nothing in the current folder configures it or is run by it, and it shows no viewer.

DaCe reads ``.dace.conf`` of the current folder before the user's own, and that file may name hooks to call, a compiler
to run and a folder to import from; it also imports what earlier versions left in ``.dacecache``. A model's folder may
come from anybody. So DaCe is imported from within the root folder, whoever imports it first. What the user sets counts
still: the environment's ``DACE_…``, the file that ``DACE_CONFIG`` names, ``~/.dace.conf``.

In a notebook DaCe would ask the network for its viewer, or put the 7 MB of its own copy into the cell that imports it.
"""

import builtins
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

GUARDED = "dace"
CONFIG = "DACE_CONFIG"
_SHELL = "get_ipython"
NOWHERE = f"{os.devnull}/dace"


class GuardedImport(MetaPathFinder):
    """Finds DaCe as the other finders do, and has it run in the root folder."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module as another finder finds it, with a guarded loader; nothing for any other module."""
        if fullname != GUARDED:
            return None
        for finder in sys.meta_path:
            found = None if finder is self else finder.find_spec(fullname, path, target)
            if found is not None and found.loader is not None:
                found.loader = _GuardedLoader(found.loader)
                return found
        return None


class _GuardedLoader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        with _root_folder(), _quick_settings(), _no_notebook():
            self._loader.exec_module(module)
        from dace.config import Config

        # DaCe's own is in the current folder. One that cannot exist: what would use it fails, loudly.
        Config.set("default_build_folder", value=NOWHERE)


def install() -> None:
    """Guard the import of DaCe in this process; doing it again changes nothing."""
    if not any(isinstance(finder, GuardedImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, GuardedImport())


@contextmanager
def _quick_settings() -> Iterator[None]:
    """Have DaCe's settings, 50 kB of YAML, read by libyaml: the loader in Python takes ten times as long."""
    import yaml  # type: ignore[import-untyped]  # DaCe's

    in_python = yaml.SafeLoader
    if yaml.__with_libyaml__:
        yaml.SafeLoader = yaml.CSafeLoader
    try:
        yield
    finally:
        yaml.SafeLoader = in_python


@contextmanager
def _no_notebook() -> Iterator[None]:
    """Hide from DaCe that it is imported in a notebook, which it asks for by this name."""
    shell = vars(builtins).pop(_SHELL, None)
    try:
        yield
    finally:
        if shell is not None:
            setattr(builtins, _SHELL, shell)


@contextmanager
def _root_folder() -> Iterator[None]:
    named = os.environ.get(CONFIG)
    paths = list(sys.path)
    here = os.open(".", os.O_RDONLY)
    try:
        if named:
            os.environ[CONFIG] = os.path.abspath(named)  # noqa: PTH100  # a relative one is meant from the folder of the call
        os.chdir(os.path.abspath(os.sep))  # noqa: PTH100  # only an administrator can put something there
        yield
    finally:
        os.fchdir(here)
        os.close(here)
        if named:
            os.environ[CONFIG] = named
        sys.path[:] = paths  # DaCe puts a folder for transformations of its own first
