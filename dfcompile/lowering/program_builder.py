"""Builds the SDFG of the next level: the one mutable class of this stage."""

import copy
from collections import ChainMap
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import dace
import numpy as np
import numpy.typing as npt
from dace.sdfg.nodes import AccessNode

from dfcompile.errors import InternalError
from dfcompile.frontend import AttributeValue, ChosenExpansion, Level, ModelNode, Port, Program
from dfcompile.frontend.sdfg import operator_graph
from dfcompile.frontend.sdfg.operator_node import scalar_type
from dfcompile.lowering.canonical_fragment import Border, CanonicalFragment
from dfcompile.lowering.nests.program import View
from dfcompile.lowering.node import CanonicalNode, Node, Operator
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.tensor import Tensor, declared_tensor, free_name, frozen
from dfcompile.records import replace

Values: TypeAlias = npt.NDArray[np.generic]


class ProgramBuilder(operator_graph.OperatorGraph):
    """Collects arrays, operators and map scopes of one state, then freezes them as a `Program`."""

    def __init__(self, program: Program) -> None:
        super().__init__(program.sdfg.name)
        self._program = program
        self._outputs, self._parameters = list(program.outputs), dict(program.parameters)
        self._views = set[str]()
        self._renamed: dict[str, View] = {}  # outputs that another array became
        # Names of arrays that there are, or that this level may still give to arrays.
        self._taken: ChainMap[str, object] = ChainMap(self.sdfg.arrays, program.sdfg.arrays)
        for name in (*(port.array for port in program.inputs), *program.parameters):
            self._copy_array(program.sdfg, name)

    def _copy_array(self, source: dace.SDFG, name: str) -> None:
        if name not in self.sdfg.arrays:
            operator_graph.put_array(self.sdfg, name, copy.copy(source.arrays[name]))

    def free_name(self, name: str) -> str:
        """Return the name, or one with underscores behind it that no array has or is going to have."""
        return free_name(name, self._taken)

    def border(self, op: Operator) -> Border:
        """Return what an operator sees of the program."""
        owned = {tensor.name for tensor in op.operands() if self._is_owned(tensor.name)}
        return Border(self._taken, {port.array for port in self._outputs}, owned)

    def place(self, op: Operator, fragment: CanonicalFragment) -> None:
        """Add what an expansion made of an operator."""
        for tensor in op.operands():
            if tensor.name in self._renamed:
                self.add_view(self._renamed.pop(tensor.name))
        for step in fragment.steps:
            match step:
                case View():
                    self.add_view(step)
                case CanonicalNode():
                    self.add_canonical(step)
                case Tensor(value=None):
                    self.add_array(step.name, step.shape, step.dtype, materialised=step.name in fragment.materialised)
                case Tensor(value=value):  # a constant that lowering itself computed
                    assert value is not None
                    self.add_array(step.name, step.shape, step.dtype)
                    self.sdfg.arrays[step.name].transient = False
                    self._parameters[step.name] = frozen(value)

    def add_array(self, name: str, shape: Iterable[int], dtype: str, *, materialised: bool = False) -> None:
        """Add a transient array (a model output is not transient).

        Raises:
            InternalError: the name is taken.
        """
        if name in self.sdfg.arrays:
            raise InternalError(f"array {name!r}: added twice")
        array = operator_graph.add_array(self.sdfg, name, shape, dtype, is_transient=not self._is_output(name))
        if materialised:
            array.storage = dace.StorageType.CPU_Heap

    def adopt_outputs(self, source: dace.SDFG, op: Node) -> None:
        """Add the arrays that an operator writes as they were declared at the level before."""
        for tensor in op.results():
            self._copy_array(source, tensor.name)

    def add_view(self, view: View) -> None:
        """Add a view: the same elements in the same order under another shape, or the same bits as another type.

        A model output cannot be a view: its producer's array becomes the output instead, and the output port keeps
        the model's shape.
        """
        name, source = view.tensor.name, view.source
        if source in self._renamed:
            self.add_view(self._renamed.pop(source))
        if self._is_output(name) and self._is_owned(source):
            self._outputs = [replace(port, array=source) if port.array == name else port for port in self._outputs]
            self.sdfg.arrays[source].transient = False
            self._renamed[name] = view  # one that nobody reads would be invalid: it is made when it is asked for
            return
        if self._is_output(name):
            raise InternalError(f"view {name!r}: of an array of the model's border")
        same, dtype = self.sdfg.arrays[source].dtype, view.tensor.dtype
        is_same = dtype == declared_tensor(self.sdfg, source).dtype
        self.sdfg.add_view(name, list(view.tensor.shape), same if is_same else scalar_type(dtype))
        node = self.new_access(name)
        self.state.add_edge(self.access(source), None, node, "views", operator_graph.whole_memlet(self.state, source))
        self._views.add(name)

    def rewrite(self, name: str) -> tuple[AccessNode, AccessNode]:
        """Return the array's current access node and a new one that now takes its place."""
        before = self.access(name)
        return before, self.new_access(name)

    def add_canonical(self, op: CanonicalNode[CanonicalOperator]) -> None:
        """Add a canonical operator between arrays that are there."""
        self.add(described(op, op.operator.attributes()))

    def _is_output(self, name: str) -> bool:
        return any(port.array == name for port in self._outputs)

    def _is_owned(self, name: str) -> bool:
        return name in self.sdfg.arrays and bool(self.sdfg.arrays[name].transient) and name not in self._views

    def finish(self, level: Level, nodes: tuple[ModelNode, ...], chosen: tuple[ChosenExpansion, ...] = ()) -> Program:
        """Drop what nothing uses, validate and freeze."""
        name, inputs, outputs, applied = self._program.name, self._program.inputs, self._outputs, self._program.applied
        parameters = drop_unused(self.sdfg, (*inputs, *outputs), self._parameters)
        return Program(name, level, self.sdfg, inputs, tuple(outputs), parameters, nodes, chosen, applied)


def drop_unused(sdfg: dace.SDFG, border: Iterable[Port], parameters: Mapping[str, Values]) -> Mapping[str, Values]:
    """Remove the arrays that no node and no port has, and number what is left; return the parameters that are used."""
    used = {node.data for node in sdfg.start_state.data_nodes()}
    kept = used | {port.array for port in border}
    for name in [name for name in sdfg.arrays if name not in kept]:
        sdfg.remove_data(name, validate=False)
    operator_graph.number_elements(sdfg)
    return MappingProxyType({name: value for name, value in parameters.items() if name in used})


def described(op: Node, attributes: Mapping[str, AttributeValue]) -> operator_graph.Operator:
    """Return an operator, with attributes as they are saved, as it is added to an SDFG."""
    read, written = (["" if tensor is None else tensor.name for tensor in ends] for ends in (op.inputs, op.outputs))
    return operator_graph.Operator(op.name, op.op_type, op.origin, read, written, attributes, op.dialect)
