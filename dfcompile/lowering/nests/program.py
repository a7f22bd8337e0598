"""A program of level 2: loop nests."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag import Kernel
from dfcompile.canonical_dag.extraction.scopes import Access, Array, LoweredGraph, MapScope
from dfcompile.errors import UserError
from dfcompile.frontend import AppliedPass, ChosenExpansion, Level, ModelNode, Program
from dfcompile.host.printable import printable
from dfcompile.lowering.expressions import is_complex
from dfcompile.lowering.nests.nest import Nest
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.tensor import Tensor
from dfcompile.records import replace


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
