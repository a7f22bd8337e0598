"""The code of a nest as a tasklet has it: Python, with the names of its variables and loops."""

import ast
import re
from collections.abc import Mapping
from copy import deepcopy

from dfcompile.lowering.expressions import expression_tree, widened
from dfcompile.lowering.nests.nest import Nest
from dfcompile.lowering.tensor import Tensor

RESULT = "result"
_WORD = re.compile(r"\b[A-Za-z_]\w*")


def tasklet_code(nest: Nest, names: Mapping[str, str] | None = None) -> str:
    """Return the code of a nest, which writes its result.

    Args:
        nest: that calls no library.
        names: of variables and loops that are called otherwise, ``result`` among them.

    Raises:
        UserError: it is no expression of Python, or is nested too deeply.
    """
    dtypes = {name: read.tensor.dtype for name, read in nest.reads.items()}
    place = RESULT
    if nest.scatter is not None:
        place = _narrowed(f"{RESULT}[{', '.join(nest.scatter)}]", {RESULT: nest.write.tensor})
    return renamed_words(f"{place} = {_narrowed(widened(nest.code, dtypes), nest.tables)}", names or {})


def words_of(text: str) -> frozenset[str]:
    """Return the names that code has."""
    return frozenset(_WORD.findall(text))


def renamed_words(text: str, names: Mapping[str, str]) -> str:
    """Return code with other names for some of its variables."""
    return _WORD.sub(lambda word: names.get(word.group(), word.group()), text)


def _narrowed(expression: str, tables: Mapping[str, Tensor]) -> str:
    """Leave out the indices of tables in dimensions of extent 1, which a tasklet does not see.

    ``table[i0, (index + 3) % 3]`` becomes ``table[(index + 3) % 3]`` for ``table[1, 3]``.
    """
    narrow = {name: table.shape for name, table in tables.items() if 1 in table.shape}
    return ast.unparse(_Narrowing(narrow).visit(deepcopy(expression_tree(expression)))) if narrow else expression


class _Narrowing(ast.NodeTransformer):
    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._shapes = shapes

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if not (isinstance(node.value, ast.Name) and node.value.id in self._shapes):
            return self.generic_visit(node)
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        kept = [at for at, extent in zip(indices, self._shapes[node.value.id], strict=True) if extent > 1]
        if not kept:
            return node.value
        return ast.Subscript(node.value, kept[0] if len(kept) == 1 else ast.Tuple(kept, ast.Load()), ast.Load())
