"""What the back end offers is imported name by name."""

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dfcompile import dfmodel_backend


def _declared() -> dict[str, str]:
    """What type checkers are told: the module of each name."""
    assert dfmodel_backend.__file__ is not None
    tree = ast.parse(Path(dfmodel_backend.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_names_come_from_where_type_checkers_look_for_them() -> None:
    assert dict(dfmodel_backend._PLACES) == _declared()
    assert sorted(_declared()) == sorted(dfmodel_backend.__all__)


@pytest.mark.parametrize("name", dfmodel_backend.__all__)
def test_a_name_is_found(name: str) -> None:
    assert not isinstance(getattr(dfmodel_backend, name), ModuleType)
    assert name in dir(dfmodel_backend)


def test_names_are_found_after_all_modules_were_imported() -> None:
    code = (
        "import importlib, pkgutil, types, dfcompile.dfmodel_backend as backend\n"
        "for found in pkgutil.walk_packages(backend.__path__, backend.__name__ + '.'):\n"
        "    importlib.import_module(found.name)\n"
        "print([name for name in backend.__all__ if isinstance(getattr(backend, name), types.ModuleType)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_an_unknown_name_is_said() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'chek_mapping'"):
        _ = dfmodel_backend.chek_mapping  # type: ignore[attr-defined]
