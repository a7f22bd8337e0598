"""The names that fronts hand on with ``from module import name as name`` stand on their pages, as if defined there.

An extension of griffe, which reads the modules for the site.
"""

import ast
from typing import Any

import griffe


class PublicNames(griffe.Extension):
    """Makes such names public, as type checkers have them."""

    def on_alias_instance(self, *, node: ast.AST | griffe.ObjectNode, alias: griffe.Alias, **_: Any) -> None:
        """Look at a name that a module imports; griffe calls this."""
        if isinstance(node, ast.ImportFrom) and any(one.name == one.asname == alias.name for one in node.names):
            alias.public = True
