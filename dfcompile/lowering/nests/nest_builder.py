"""Collects the loop nests of a program, operator by operator."""

from collections.abc import Iterable, Sequence

from dfcompile.canonical_dag.extraction.scopes import Array
from dfcompile.errors import InternalError
from dfcompile.frontend import ChosenExpansion, Program
from dfcompile.lowering.declared import declared_array, declared_tensor
from dfcompile.lowering.expansion import Expansion
from dfcompile.lowering.kernels import kernel_of
from dfcompile.lowering.nests.nest import array_of
from dfcompile.lowering.nests.operator_nests import OperatorNests, nests_of
from dfcompile.lowering.nests.program import NestProgram, View
from dfcompile.lowering.node import CanonicalNode, Node
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.tensor import Tensor


class NestBuilder:
    """The arrays, views and nests of a program of level 1 on its way to level 2."""

    def __init__(self, library: Program) -> None:
        self._library = library
        self._constants = {*library.parameters, *(port.array for port in library.inputs if port.is_constant)}
        self._tensors: dict[str, Tensor] = {}
        self._arrays: dict[str, Array] = {}
        self._steps: list[OperatorNests | View] = []
        for name in (*(port.array for port in library.inputs), *library.parameters):
            self._adopt(name)

    def _adopt(self, name: str) -> None:
        """Add an array as it is declared on level 1."""
        if name in self._arrays:
            return
        self._tensors[name] = declared_tensor(self._library.sdfg, name)
        self._arrays[name] = declared_array(self._library.sdfg, name)

    def tensor(self, name: str) -> Tensor:
        """Return what expansions see of an array or a view."""
        found = self._tensors[name]
        value = self._library.parameters.get(name)
        return Tensor(name, found.shape, found.dtype, value, name in self._constants)

    def new_array(self, name: str, shape: Iterable[int], dtype: str, *, materialised: bool) -> Tensor:
        """Add an intermediate array of that name, or one with underscores behind it, and return it."""
        while name in self._library.sdfg.arrays or name in self._arrays:
            name += "_"
        self._tensors[name] = Tensor(name, tuple(shape), dtype)
        self._arrays[name] = array_of(self._tensors[name], is_transient=True, is_materialised=materialised)
        return self._tensors[name]

    def adopt_outputs(self, op: Node) -> None:
        """Add the arrays that an operator writes as they are declared on level 1."""
        is_constant = bool(op.inputs) and all(tensor.is_constant for tensor in op.operands())
        for tensor in op.results():
            self._adopt(tensor.name)
            if is_constant:
                self._constants.add(tensor.name)

    def add_view(self, source: Tensor, name: str, shape: Iterable[int], dtype: str) -> None:
        """Add a view: the same elements in the same order under another shape, or the same bits as another type."""
        if name in self._arrays:
            raise InternalError(f"view {name!r}: of an array of the model's border")
        view = Tensor(name, tuple(shape), dtype)
        self._tensors[name] = view
        self._arrays[name] = array_of(view, is_transient=True, is_materialised=False)
        self._steps.append(View(view, source.name))
        if source.is_constant:
            self._constants.add(name)

    def expand(self, op: CanonicalNode[CanonicalOperator], found: Expansion, *, is_checked: bool) -> None:
        """Add the nests that an expansion builds of an operator.

        Raises:
            PluginError: it is a third party's, and what it builds is wrong.
            VerificationError: nothing writes a result.
        """
        before = len(self._tensors)
        nests = nests_of(op, found, self, is_checked=is_checked)
        written = {nest.write.tensor.name for nest in nests}
        for tensor in op.results():
            op.check_result(tensor, self._tensors[tensor.name] if tensor.name in written else None)
        added = tuple(self._tensors.values())[before:]
        self._steps.append(OperatorNests(op, kernel_of(op, found.name, nests), nests, added))

    def finish(self, chosen: Sequence[ChosenExpansion]) -> NestProgram:
        """Return what was collected."""
        return NestProgram(self._library, tuple(chosen), tuple(self._steps), self._arrays, self._library.applied)
