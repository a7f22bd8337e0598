"""Loop nests: loops around one computation, the arrays it accesses, which of its loops are tasks; programs of them.

The code of a nest is Python, with the names of its variables and loops; a tasklet has it with names of its own.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cached_property
from math import prod
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from dfcompile.canonical_dag import Kernel
from dfcompile.canonical_dag.extraction.scopes import Access, Array, LoweredGraph, MapScope
from dfcompile.errors import UserError
from dfcompile.frontend import AppliedPass, ChosenExpansion, Level, ModelNode, Program
from dfcompile.frontend.affine import Affine, affine_text
from dfcompile.host.printable import printable
from dfcompile.lowering.expressions import Reduction, expression_tree, is_complex, widened
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.tensor import Tensor
from dfcompile.records import replace

RESULT = "result"
_WORD = re.compile(r"\b[A-Za-z_]\w*")


class NestAccess(Struct, frozen=True, eq=False):
    """An element of an array.

    Attributes:
        tensor: the array.
        indices: one per dimension; of a scalar there may be none.
    """

    tensor: Tensor
    indices: tuple[Affine, ...]

    def __str__(self) -> str:
        return f"{self.tensor.name}[{', '.join(map(affine_text, self.indices))}]"


class Nest(Struct, frozen=True, eq=False):
    """A map scope: ``write = code(reads)`` in every iteration of its loops.

    Attributes:
        name: of the scope, such as ``fc1.matmul.gather``.
        origin: the user's operator.
        extents: of the loops, outer to inner.
        spatial: the first of them, of which every iteration is a task of its own.
        reads: variable of the code -> element.
        tables: variable of the code -> array of which it reads one element per iteration, at an index that it computes.
        write: the element that is written; of a scattered write the array alone.
        code: expression of the variables; of a call what is called, in C++.
        accumulate: how what is written to one element is combined.
        after_write: it overwrites, or accumulates into, what an earlier scope has written.
        scatter: indices of a scattered write, expressions of the variables; ``None`` of any other.
        library: that is called once per iteration of all loops; such a scope can be run, but is no task. Its accesses
            are of all elements of the dimensions that have no index.
    """

    name: str
    origin: str
    extents: Mapping[str, int]
    spatial: tuple[str, ...]
    reads: Mapping[str, NestAccess]
    write: NestAccess
    code: str
    tables: Mapping[str, Tensor] = field(default_factory=dict)
    accumulate: Reduction | None = None
    after_write: bool = False
    scatter: tuple[str, ...] | None = None
    library: str = ""

    @property
    def iterations(self) -> int:
        """Of all loops together."""
        return prod(self.extents.values())

    @property
    def is_initialised(self) -> bool:
        """Whether what it writes is set to the neutral element of its reduction before."""
        return self.accumulate is not None and not self.after_write

    def tensors(self) -> tuple[Tensor, ...]:
        """What it accesses."""
        return (*(read.tensor for read in self.reads.values()), *self.tables.values(), self.write.tensor)

    def __str__(self) -> str:
        loops = ", ".join(f"{'*' * (name in self.spatial)}{name}<{extent}" for name, extent in self.extents.items())
        reads = [f"{name} = {access}" for name, access in self.reads.items()]
        reads += [f"{name} = {table.name}[…]" for name, table in self.tables.items()]
        target = str(self.write) if self.scatter is None else f"{self.write.tensor.name}[{', '.join(self.scatter)}]"
        combined = "" if self.accumulate is None else self.accumulate.name.lower()
        return f"map {self.name} ({loops}): {'; '.join([*reads, f'{target} {combined}= {self.code}'])}"

    def scope(self, arrays: Mapping[str, Array]) -> MapScope:
        """Return the scope as extraction reads it, without a kernel.

        Args:
            arrays: those that it accesses, views among them.
        """
        loops = self.extents or {"once": 1}
        accesses = {name: _access(read, loops, arrays) for name, read in self.reads.items()}
        accesses |= {name: _somewhere(table, loops) for name, table in self.tables.items()}
        write, is_spatial = self.write, tuple(name in self.spatial for name in loops)
        target = _access(write, loops, arrays) if self.scatter is None else _somewhere(write.tensor, loops)
        reads = tuple(accesses[name] for name in sorted(accesses))
        return MapScope(self.name, self.origin, None, tuple(loops.values()), is_spatial, reads, (target,))


def _access(access: NestAccess, loops: Mapping[str, int], arrays: Mapping[str, Array]) -> Access:
    base, strides = 0, dict.fromkeys(loops, 0)
    for index, stride in zip(access.indices, arrays[access.tensor.name].strides, strict=False):
        for name, factor in index.items():
            if name:
                strides[name] += factor * stride
            else:
                base += factor * stride
    return Access(access.tensor.name, base, tuple(strides.values()))


def _somewhere(tensor: Tensor, loops: Mapping[str, int]) -> Access:
    """Return the access of an element that depends on data; where there is one alone, it does not."""
    return Access(tensor.name, 0, (0,) * len(loops), is_indirect=tensor.elements > 1)


def array_of(tensor: Tensor, *, is_transient: bool, is_materialised: bool) -> Array:
    """Return the array that a tensor is, with rows one after another."""
    return Array(tensor.name, tensor.shape, tensor.strides, tensor.element_bytes, is_transient, is_materialised)


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


class OperatorNests(Struct, frozen=True, eq=False):
    """A canonical operator as loop nests.

    Attributes:
        op: the operator.
        kernel: that all its nests belong to.
        nests: in an order in which they can run.
        added: arrays between them.
    """

    op: CanonicalNode[CanonicalOperator]
    kernel: Kernel
    nests: tuple[Nest, ...]
    added: tuple[Tensor, ...]


class View(Struct, frozen=True, eq=False):
    """An array or view under another shape.

    Attributes:
        tensor: the view.
        source: what it shows.
    """

    tensor: Tensor
    source: str


class NestProgram(Struct, frozen=True, eq=False, dict=True):
    """A model whose operators are loop nests; the SDFG of level 2 is made of it where one is asked for.

    Attributes:
        library: the program of level 1 that it is.
        chosen: the expansions that led here, level after level.
        steps: its operators as nests, and its views, in an order in which they can run.
        arrays: by name, views among them.
        applied: the passes that changed something on the way here.
    """

    library: Program
    chosen: tuple[ChosenExpansion, ...]
    steps: tuple[OperatorNests | View, ...]
    arrays: Mapping[str, Array]
    applied: tuple[AppliedPass, ...] = ()

    @property
    def name(self) -> str:
        """Of the model."""
        return self.library.name

    @property
    def nodes(self) -> tuple[ModelNode, ...]:
        """Every node of the model."""
        return self.library.nodes

    @property
    def level(self) -> Level:
        """Of nests."""
        return Level.NESTS

    @property
    def nests(self) -> Iterator[Nest]:
        """All nests, in an order in which they can run."""
        return (nest for step in self.steps if isinstance(step, OperatorNests) for nest in step.nests)

    @cached_property
    def dtypes(self) -> Mapping[str, str]:
        """Element types of the arrays and views that its steps touch, by name, in the order in which they do."""
        found: dict[str, str] = {}
        for step in self.steps:
            if isinstance(step, View):
                declared = self.library.sdfg.arrays
                if step.source not in found and step.source in declared:
                    found[step.source] = np.dtype(declared[step.source].dtype.type).name
                found[step.tensor.name] = step.tensor.dtype
            else:
                found.update((tensor.name, tensor.dtype) for nest in step.nests for tensor in nest.tensors())
        return MappingProxyType(found)

    @property
    def complex_types(self) -> tuple[str, ...]:
        """Names of the complex element types of its arrays."""
        border = (port.dtype for port in (*self.library.inputs, *self.library.outputs))
        return tuple(sorted({dtype for dtype in (*self.dtypes.values(), *border) if is_complex(dtype)}))

    @cached_property
    def parameters(self) -> Mapping[str, npt.NDArray[np.generic]]:
        """Values of the constant arrays that are used."""
        values = self.library.parameters
        return MappingProxyType({name: value for name, value in values.items() if name in self.dtypes})

    @cached_property
    def graph(self) -> LoweredGraph:
        """What extraction needs of it.

        Raises:
            UserError: a scope calls a library.
        """
        shown = {step.tensor.name: step.source for step in self.steps if isinstance(step, View)}
        roots = {name: root_of(name, shown) for name in self.dtypes}
        steps = (step for step in self.steps if isinstance(step, OperatorNests))
        scopes = tuple(scope for step in steps for scope in self._scopes(step, roots))
        return graph_of_scopes(str(self.library.sdfg.name), scopes, self.arrays, roots.values())

    def __str__(self) -> str:
        """One line per view and nest, in an order in which they can run."""
        lines = [f"program {self.name} level=nests"]
        for step in self.steps:
            lines += [f"view {step.tensor.name} = {step.source}"] if isinstance(step, View) else map(str, step.nests)
        return "\n".join(map(printable, lines)) + "\n"

    def _scopes(self, step: OperatorNests, roots: Mapping[str, str]) -> Iterator[MapScope]:
        ends = step.kernel.inputs, step.kernel.outputs
        inputs, outputs = (tuple(roots.get(name, name) for name in names) for names in ends)
        kernel = replace(step.kernel, inputs=inputs, outputs=outputs)
        for nest in step.nests:
            if nest.library:
                found = f"found a call of {nest.library}, which can be run (dfcompile.run) but not scheduled"
                raise UserError(f"node {nest.origin!r}: {found}, against canonical tasks (name another expansion)")
            yield renamed(replace(nest.scope(self.arrays), kernel=kernel), roots)


def root_of(name: str, shown: Mapping[str, str]) -> str:
    """Return the array that a view shows in the end, given of each view what it shows; of an array itself."""
    while name in shown:
        name = shown[name]
    return name


def graph_of_scopes(
    name: str, scopes: tuple[MapScope, ...], arrays: Mapping[str, Array], others: Iterable[str] = ()
) -> LoweredGraph:
    """Return scopes with the arrays that they access, and others; what is read where data says is in memory."""
    accesses = [access for scope in scopes for access in (*scope.reads, *scope.writes)]
    used = {name: arrays[name] for name in dict.fromkeys((*(access.array for access in accesses), *others))}
    for indirect in (access.array for access in accesses if access.is_indirect):
        used[indirect] = replace(used[indirect], is_materialised=True)
    return LoweredGraph(name, scopes, used)


def renamed(scope: MapScope, names: Mapping[str, str]) -> MapScope:
    """Return a scope with other names for the arrays that it accesses."""

    def access(each: Access) -> Access:
        return replace(each, array=names[each.array])

    return replace(scope, reads=tuple(map(access, scope.reads)), writes=tuple(map(access, scope.writes)))
