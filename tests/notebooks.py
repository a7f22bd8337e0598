"""Notebooks of the examples: run anew, so that none shows what is not so.

The code cells of a notebook run in order, in its folder and in one namespace. What a cell prints, and its last value in
the forms that Jupyter would show, are its outputs.

``python -m tests.notebooks`` writes what the cells give now.
"""

import ast
import io
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).parent.parent
_FORMS = {"image/svg+xml": "_repr_svg_", "text/html": "_repr_html_"}  # beside plain text
# Else the text of a data frame depends on the terminal; and options that a notebook sets are restored.
_AS_IN_JUPYTER = {"display.max_columns": 20, "display.width": 80, "display.precision": 6, "display.max_colwidth": 50}

Json = dict[str, Any]


def notebooks() -> tuple[Path, ...]:
    """Return the notebooks of the examples."""
    return tuple(sorted((ROOT / "examples").rglob("*.ipynb")))


def run_now(notebook: Path) -> str:
    """Return a notebook as it would be now, written as Jupyter writes it."""
    content: Json = json.loads(notebook.read_text())
    names: dict[str, object] = {"__name__": "__main__"}
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    with chdir(notebook.parent), pd.option_context(*(word for option in _AS_IN_JUPYTER.items() for word in option)):
        for number, cell in enumerate(code, 1):
            cell["execution_count"] = number
            cell["outputs"] = list(_outputs("".join(cell["source"]), number, names))
    return json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _outputs(source: str, number: int, names: dict[str, object]) -> Iterator[Json]:
    """Run a cell, and yield its outputs in Jupyter's format."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) and not source.rstrip().endswith(";") else None
    value = None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), f"cell {number}", "exec"), names)  # a notebook of ours
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    if printed.getvalue():
        yield {"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())}
    if value is not None:
        shown = {form: _lines(text) for form, text in sorted(_shown(value).items())}
        yield {"data": shown, "execution_count": number, "metadata": {}, "output_type": "execute_result"}


def _shown(value: object) -> Mapping[str, str]:
    forms = {form: getattr(value, name)() for form, name in _FORMS.items() if hasattr(value, name)}
    return {"text/plain": repr(value)} | {form: text for form, text in forms.items() if text is not None}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    for path in notebooks():
        fresh = run_now(path)
        is_new = fresh != path.read_text()
        path.write_text(fresh)
        sys.stdout.write(f"{path.relative_to(ROOT)}: {len(fresh.encode()):,} bytes{', changed' if is_new else ''}\n")
