"""What an expansion of a canonical operator builds with: map scopes and arrays."""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from math import prod
from types import MappingProxyType
from typing import TypeAlias

import dace
from dace.sdfg.nodes import AccessNode, Tasklet

from dfcompile.canonical_dag.annotation import Annotation
from dfcompile.errors import InternalError
from dfcompile.frontend import scalar_type
from dfcompile.frontend.sdfg.identifiers import underscored
from dfcompile.lowering.expression_tree import expression_tree
from dfcompile.lowering.expressions import widened
from dfcompile.lowering.kernels import kernel_of
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.program_builder import ProgramBuilder
from dfcompile.lowering.reduction import Reduction
from dfcompile.lowering.tensor import Tensor
from dfcompile.records import replace

Access: TypeAlias = tuple[Tensor, Sequence[str]]

_ONCE = MappingProxyType({"once": 1})  # the loops of a scope that has none


class MapFragment:
    """The map scopes that replace one canonical operator.

    One scope is one task, or one task per iteration of its *spatial* loops; its other loops run one after another in
    the order given, outer to inner: that order is the order in which the task reads and writes.
    """

    def __init__(self, builder: ProgramBuilder, op: CanonicalNode[CanonicalOperator]) -> None:
        self._builder = builder
        self._op = op
        self._annotated: list[tuple[Tasklet, Annotation]] = []
        self._iterations = 0
        self._table_bytes: dict[str, int] = {}

    def finish(self, expansion: str) -> None:
        """Write on every scope which kernel it belongs to."""
        kernel = kernel_of(self._op, expansion, self._iterations, self._table_bytes)
        for tasklet, annotation in self._annotated:
            tasklet.location = replace(annotation, kernel=kernel).location()

    def array(self, name: str, shape: Iterable[int], dtype: str | None = None, *, materialised: bool = False) -> Tensor:
        """Add an intermediate array and return it; see `CanonicalFragment.array`."""
        full = self._builder.free_name(f"{underscored(self._op.name)}_{name}")
        return self._builder.add_array(full, shape, dtype or self._op.output().dtype, materialised=materialised)

    def map(
        self,
        step: str,
        *,
        loops: Mapping[str, int],
        reads: Mapping[str, Access],
        write: Access,
        code: str,
        spatial: Mapping[str, int] | None = None,
        tables: Mapping[str, Tensor] | None = None,
        accumulate: Reduction | None = None,
        after_write: bool = False,
        scattered: bool = False,
    ) -> None:
        """Add a map scope: ``write = code(reads)`` in every iteration.

        Args:
            step: what the scope does within the operator, such as ``gather``; empty if the operator is this one scope.
            loops: temporal loops and their extents, outer to inner.
            reads: tasklet variable -> (array, one affine index expression of the loops per dimension).
            write: (array, one affine index expression per dimension).
            code: Python expression of the tasklet variables; what is stored in half precision is computed in single.
            spatial: loops of which every iteration is a task of its own.
            tables: tasklet variable -> array of which the code reads one element per iteration, at an index that it
                computes itself, such as ``table[row, j]``.
            accumulate: combine the values written to one element; the result is set to the neutral element first.
            after_write: the scope overwrites parts of an array that an earlier scope has written, or accumulates into
                what is there.
            scattered: the indices of the write are expressions of the tasklet variables as well: where an iteration
                writes its one element depends on data.
        """
        spatial = spatial or {}
        extents = {**spatial, **loops}
        if any(extent < 1 for extent in extents.values()):
            raise InternalError(f"scope {self._op.name}.{step}: empty loop in {extents}")
        scope = f"{self._op.name}.{step}" if step else self._op.name
        tables = tables or {}
        renamed = {name: self._builder.free_name(name) for name in (*extents, *reads, *tables, "result")}
        target, indices = write
        dtypes = {name: tensor.dtype for name, (tensor, _) in reads.items()}
        output_node = self._builder.write(target.name)
        before = None
        if accumulate is not None and not after_write:
            self._initialise(scope, target, accumulate)
        if accumulate is not None or after_write:
            before, output_node = self._builder.rewrite(target.name)
        if scattered:
            place = _narrowed(f"result[{', '.join(indices)}]", {"result": target})
            memlet = self._somewhere(target, accumulate)
        else:
            place, memlet = "result", self._memlet(target, indices, renamed, accumulate)
        tasklet, entry = self._builder.scopes.add(
            underscored(scope),
            {renamed[name]: extent for name, extent in extents.items()} or _ONCE,
            {
                **{renamed[name]: self._read(tensor, index, renamed) for name, (tensor, index) in reads.items()},
                **{renamed[name]: self._indirect_read(tensor) for name, tensor in tables.items()},
            },
            _rename(f"{place} = {_narrowed(widened(code, dtypes), tables)}", renamed),
            renamed["result"],
            (output_node, memlet),
        )
        if before is not None:
            self._builder.state.add_nedge(before, entry, dace.Memlet())
        of_task = Annotation(self._op.origin, scope, spatial=tuple(renamed[name] for name in spatial))
        self._annotated.append((tasklet, of_task))
        iterations = prod(extents.values())
        self._iterations += iterations
        for table in tables.values():
            read_bytes = iterations * table.element_bytes
            self._table_bytes[table.name] = self._table_bytes.get(table.name, 0) + read_bytes

    def call(
        self,
        step: str,
        *,
        library: str,
        spatial: Mapping[str, int],
        reads: Mapping[str, Access],
        write: Access,
        code: str,
    ) -> None:
        """Add a map scope that calls a library once per iteration: it can be run, but not scheduled.

        Args:
            step: what the scope does within the operator; empty if the operator is this one scope.
            library: its name, for people.
            spatial: loops of the scope, of which every iteration is a call.
            reads: variable of the code -> (array, one index of the loops per leading dimension); a pointer to the
                elements of the dimensions that are left.
            write: of ``result``, likewise.
            code: in C++.
        """
        scope = f"{self._op.name}.{step}" if step else self._op.name
        accesses = {**reads, "result": write}
        renamed = {name: self._builder.free_name(name) for name in (*spatial, *accesses)}
        places = {
            renamed[name]: self._memlet(tensor, [*at, *(f"0:{extent}" for extent in tensor.shape[len(at) :])], renamed)
            for name, (tensor, at) in accesses.items()
        }
        target = write[0].name
        tasklet, _, _ = self._builder.state.add_mapped_tasklet(
            underscored(scope),
            {renamed[name]: f"0:{extent}" for name, extent in spatial.items()} or {"once": "0:1"},
            {renamed[name]: places[renamed[name]] for name in reads},
            _rename(code, renamed),
            {renamed["result"]: places[renamed["result"]]},
            language=dace.Language.CPP,
            external_edges=True,
            input_nodes={tensor.name: self._builder.read(tensor.name) for tensor, _ in reads.values()},
            output_nodes={target: self._builder.write(target)},
        )
        # Of matrices of one element DaCe would hand over the element.
        for connectors, names in ((tasklet.in_connectors, reads), (tasklet.out_connectors, ("result",))):
            for name in names:
                connectors[renamed[name]] = dace.pointer(scalar_type(accesses[name][0].dtype))
        of_task = Annotation(self._op.origin, scope, tuple(renamed[name] for name in spatial), calls=library)
        self._annotated.append((tasklet, of_task))
        self._iterations += prod(spatial.values())

    def _read(
        self, tensor: Tensor, indices: Sequence[str], renamed: Mapping[str, str]
    ) -> tuple[AccessNode, dace.Memlet]:
        return self._builder.read(tensor.name), self._memlet(tensor, indices, renamed)

    def _indirect_read(self, table: Tensor) -> tuple[AccessNode, dace.Memlet]:
        memlet = self._builder.whole.of(table.name)
        memlet.volume = 1
        return self._builder.read(table.name), memlet

    def _somewhere(self, target: Tensor, reduction: Reduction | None) -> dace.Memlet:
        """Return the memlet of a write of one element at a place that the code computes."""
        memlet = self._builder.whole.of(target.name)
        memlet.volume = 1
        memlet.wcr = None if reduction is None else reduction.value
        return memlet

    def _initialise(self, scope: str, target: Tensor, reduction: Reduction) -> None:
        loops = {self._builder.free_name(f"i{axis}"): extent for axis, extent in enumerate(target.shape)}
        result = self._builder.free_name("result")
        tasklet, _ = self._builder.scopes.add(
            f"{underscored(scope)}_init",
            loops or _ONCE,
            {},
            f"{result} = {reduction.initial(target.dtype)}",
            result,
            (self._builder.write(target.name), self._memlet(target, list(loops), {})),
        )
        self._annotated.append((tasklet, Annotation(self._op.origin, scope, is_initialisation=True)))

    def _memlet(
        self,
        tensor: Tensor,
        indices: Sequence[str],
        renamed: Mapping[str, str],
        reduction: Reduction | None = None,
    ) -> dace.Memlet:
        memlet = self._builder.whole.element(tensor.name, _rename(", ".join(indices), renamed) if indices else "0")
        if reduction is not None:
            memlet.wcr = reduction.value
        return memlet


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


def _rename(text: str, renamed: Mapping[str, str]) -> str:
    return re.sub(r"\b[A-Za-z_]\w*", lambda word: renamed.get(word.group(), word.group()), text)
