"""Syntax trees of the package's files, parsed once for all tests that look at them."""

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text())
