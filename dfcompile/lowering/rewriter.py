"""The graph of a program's operators, to be rewritten by passes: walk, replace, remove, insert, rewire."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import dace
import numpy as np
import numpy.typing as npt
from dace.data import View
from dace.sdfg import nodes
from dace.sdfg.nodes import AccessNode
from dace.sdfg.state import SDFGState

from dfcompile.errors import VerificationError
from dfcompile.frontend import CANONICAL, ONNX, AttributeValue, Coverage, Level, Program
from dfcompile.frontend.sdfg.operator_graph import add_array, add_operator, whole_memlet
from dfcompile.frontend.sdfg.operator_node import OperatorNode
from dfcompile.lowering.node import Operator
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.program_builder import described, drop_unused
from dfcompile.lowering.program_nodes import in_order, operator_nodes, operator_of
from dfcompile.lowering.tensor import Tensor, declared_tensor, free_name, frozen, is_materialised
from dfcompile.records import replace

Attributes: TypeAlias = Mapping[str, AttributeValue]
Operands: TypeAlias = Sequence[Tensor | None]  # by position; None where an optional one is omitted


class ProgramRewriter:
    """The operators of a program of level 0 or 1 as a graph that can be changed; the program itself never is.

    Operators and tensors are frozen values, known by their names; what a method returns holds until the next change.
    `finish` gives the new program, or the one that was given if nothing changed.
    """

    def __init__(self, program: Program) -> None:
        if program.level is Level.MAPS:
            raise VerificationError(f"program {program.name!r}: level MAPS against one with operators")
        self._program = program
        self._sdfg = program.sdfg
        self._parameters = dict(program.parameters)
        self._outputs = {port.array for port in program.outputs}
        self._merged: set[str] = set()  # origins that live on in another operator
        self._is_changed = False
        self._index()

    def _index(self) -> None:
        self._nodes = {node.name: node for node in self._state.nodes() if isinstance(node, OperatorNode)}
        self._access: dict[str, list[AccessNode]] = {}
        for node in self._state.data_nodes():
            self._access.setdefault(node.data, []).append(node)

    @property
    def _state(self) -> SDFGState:
        return self._sdfg.start_state

    # What there is.

    def operators(self) -> tuple[Operator, ...]:
        """Return the operators, each after those that it depends on."""
        return tuple(self._operator(node) for node in in_order(self._state) if isinstance(node, OperatorNode))

    def tensor(self, name: str) -> Tensor:
        """Return a tensor by its name.

        Raises:
            VerificationError: there is none.
        """
        if name not in self._sdfg.arrays:
            raise VerificationError(f"program {self._program.name!r}: no tensor {name!r}")
        value = self._parameters.get(name)
        return replace(declared_tensor(self._sdfg, name), value=value, is_constant=value is not None)

    def intermediates(self) -> tuple[Tensor, ...]:
        """Return the tensors that operators write and that are no outputs of the model, operator after operator."""
        written = (tensor for op in self.operators() for tensor in op.results())
        return tuple(tensor for tensor in written if tensor.name not in self._outputs)

    def producer(self, tensor: Tensor) -> Operator | None:
        """Return the operator that writes a tensor; ``None`` for inputs, parameters and views."""
        writers = (source for source in self._sources(tensor) if isinstance(source, OperatorNode))
        return next(map(self._operator, writers), None)

    def readers(self, tensor: Tensor) -> tuple[Operator, ...]:
        """Return the operators that read a tensor itself, each once; those of its views are not among them."""
        found = dict.fromkeys(edge.dst for edge in self._reading(tensor) if isinstance(edge.dst, OperatorNode))
        return tuple(map(self._operator, found))

    def views(self, tensor: Tensor) -> tuple[Tensor, ...]:
        """Return the views of a tensor: the same elements in the same order under another shape."""
        found = dict.fromkeys(edge.dst.data for edge in self._reading(tensor) if isinstance(edge.dst, AccessNode))
        return tuple(map(self.tensor, found))

    def viewed(self, tensor: Tensor) -> Tensor | None:
        """Return what a tensor is a view of; ``None`` if it is no view."""
        shown = (source.data for source in self._sources(tensor) if isinstance(source, AccessNode))
        return next(map(self.tensor, shown), None)

    def is_used(self, tensor: Tensor) -> bool:
        """Return whether the model's results need a tensor: an output, or read by an operator, itself or its views."""
        if tensor.name in self._outputs or self.readers(tensor):
            return True
        return any(self.is_used(view) for view in self.views(tensor))

    def is_internal(self, tensor: Tensor) -> bool:
        """Return whether nobody but its readers sees a tensor: no input, output or view, not placed in memory."""
        array = self._sdfg.arrays[tensor.name]
        is_plain = bool(array.transient) and not isinstance(array, View) and not is_materialised(array)
        return is_plain and not self.views(tensor)

    # What can be done.

    def replace(
        self,
        *old: Operator,
        operator: CanonicalOperator | str | None = None,
        inputs: Operands | None = None,
        attributes: Attributes | None = None,
    ) -> Operator:
        """Put one operator in the place of several; it has the last one's name and writes its results.

        Args:
            old: what it replaces. Results of all but the last must be internal, and read by these operators alone.
            operator: what the new one is: such as ``MatMul()`` on level 1, such as ``Relu`` on level 0; by default what
                the last one is.
            inputs: operands of the new one by position; by default the last one's.
            attributes: of the new one, on level 0; by default the last one's.

        Raises:
            VerificationError: somebody else reads what would vanish, or it is no operator of the program's level.
        """
        self._change()
        last = old[-1]
        names = {op.name for op in old}
        inner = [tensor for op in old[:-1] for tensor in op.results()]
        for tensor in inner:
            others = [reader.name for reader in self.readers(tensor) if reader.name not in names]
            if others or not self.is_internal(tensor):
                seen = f"operator {others[0]!r}" if others else "the model or memory"
                raise VerificationError(f"operator {last.name!r}: {tensor.name!r} would vanish, which {seen} sees")
        op_type, kept = self._form(last.op_type if operator is None else operator, attributes, last)
        operands = tuple(last.inputs if inputs is None else inputs)
        new = replace(last, op_type=op_type, inputs=operands, attributes=MappingProxyType(dict(kept)))
        node = self._add(operator, new)
        for op in old:
            self._state.remove_node(self._nodes.pop(op.name))
            self._merged.add(op.origin)
        for tensor in inner:
            self._remove_data(tensor)
        self._nodes[new.name] = node
        return self._operator(node)

    def insert(
        self,
        operator: CanonicalOperator | str,
        name: str,
        inputs: Operands,
        outputs: Operands,
        attributes: Attributes | None = None,
        *,
        origin: str,
    ) -> Operator:
        """Add an operator of the program's level.

        Args:
            operator: such as ``MatMul()`` on level 1, such as ``Relu`` on level 0.
            name: one that no operator has.
            inputs: operands by position; ``None`` where an optional one is omitted.
            outputs: results by position, which nothing writes yet; see `add_tensor`.
            attributes: of the operator, on level 0.
            origin: the user's operator that it is part of.

        Raises:
            VerificationError: the name is taken, a result is written already, or it is no operator of the program's
                level.
        """
        self._change()
        if name in self._nodes:
            raise VerificationError(f"operator {name!r}: added twice")
        for tensor in outputs:
            if tensor is not None and any(map(self._state.in_degree, self._access.get(tensor.name, ()))):
                raise VerificationError(f"operator {name!r}: {tensor.name!r} is written already")
        dialect = ONNX if self._program.level is Level.ONNX else CANONICAL
        op_type, given = self._form(operator, attributes)
        new = Operator(name, dialect, op_type, origin, tuple(inputs), tuple(outputs), MappingProxyType(dict(given)))
        self._nodes[name] = self._add(operator, new)
        return self._operator(self._nodes[name])

    def remove(self, op: Operator) -> None:
        """Remove an operator whose results nobody uses, with these and their views.

        Raises:
            VerificationError: a result is used.
        """
        self._change()
        for tensor in op.results():
            if self.is_used(tensor):
                raise VerificationError(f"operator {op.name!r}: its result {tensor.name!r} is used")
        self._state.remove_node(self._nodes.pop(op.name))
        for tensor in op.results():
            self._remove_data(tensor)

    def remove_unused_views(self) -> None:
        """Remove the views that nobody reads."""
        for name in [name for name in self._access if isinstance(self._sdfg.arrays[name], View)]:
            if name in self._access and not self.is_used(self.tensor(name)):
                self._change()
                self._remove_data(self.tensor(name))

    def rewire(self, old: Tensor, new: Tensor, readers: Iterable[Operator] | None = None) -> None:
        """Let operators read another tensor of the same shape and element type instead.

        Args:
            old: which they read.
            new: which they are to read.
            readers: who; by default all, and the views of ``old`` become views of ``new``.

        Raises:
            VerificationError: the two differ in shape or element type.
        """
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            raise VerificationError(f"tensor {new.name!r}: {new} against {old} of {old.name!r}")
        self._change()
        names = None if readers is None else {reader.name for reader in readers}
        target = self._node_of(new.name)
        for edge in self._reading(old):
            if names is None or (isinstance(edge.dst, OperatorNode) and edge.dst.name in names):
                self._state.remove_edge(edge)
                memlet = whole_memlet(self._state, new.name)
                self._state.add_edge(target, None, edge.dst, edge.dst_conn, memlet)

    def add_tensor(self, name: str, shape: Iterable[int], dtype: str) -> Tensor:
        """Add a tensor for `insert` to write and return it; a name that is taken gets underscores behind it."""
        self._change()
        name = free_name(name, self._sdfg.arrays)
        add_array(self._sdfg, name, shape, dtype, is_transient=True)
        return self.tensor(name)

    def add_parameter(self, name: str, value: npt.NDArray[np.generic]) -> Tensor:
        """Add a constant tensor and return it; a name that is taken gets underscores behind it."""
        tensor = self.add_tensor(name, value.shape, value.dtype.name)
        self._sdfg.arrays[tensor.name].transient = False
        self._parameters[tensor.name] = frozen(value)
        return self.tensor(tensor.name)

    def place_in_memory(self, tensor: Tensor) -> None:
        """Let an intermediate tensor live in memory: its producer and its readers are never joined by a stream."""
        if not is_materialised(self._sdfg.arrays[tensor.name]):
            self._change()
            self._sdfg.arrays[tensor.name].storage = dace.StorageType.CPU_Heap

    def finish(self) -> Program:
        """Return the program as it is now, without what nothing uses; the one that was given if nothing changed."""
        if not self._is_changed:
            return self._program
        for node in [node for node in self._state.data_nodes() if not self._state.degree(node)]:
            self._state.remove_node(node)
        border = (*self._program.inputs, *self._program.outputs)
        parameters = drop_unused(self._sdfg, border, self._parameters)
        gone = {node.origin for node in operator_nodes(self._program)} - self._merged
        gone -= {node.origin for node in self._nodes.values()}
        nodes = tuple(
            replace(node, coverage=Coverage.FOLDED) if node.name in gone else node for node in self._program.nodes
        )
        return replace(self._program, sdfg=self._sdfg, parameters=parameters, nodes=nodes)

    # How it is done.

    def _change(self) -> None:
        if not self._is_changed:
            self._sdfg = dace.SDFG.from_json(self._program.sdfg.to_json())
            self._is_changed = True
            self._index()

    def _form(
        self, operator: CanonicalOperator | str, attributes: Attributes | None, last: Operator | None = None
    ) -> tuple[str, Mapping[str, AttributeValue]]:
        """Return type and attributes; those of the operator that is replaced if none are given."""
        is_canonical = self._program.level is Level.CANONICAL
        if isinstance(operator, CanonicalOperator):
            if not is_canonical or attributes is not None:
                raise VerificationError(f"operator {operator}: a canonical one against a type of ONNX and attributes")
            return type(operator).__name__, operator.attributes()
        if is_canonical and (last is None or attributes is not None or operator != last.op_type):
            raise VerificationError(f"operator {operator!r}: type and attributes against a canonical one ('MatMul()')")
        if attributes is None:
            return operator, {} if last is None else last.attributes
        return operator, attributes

    def _sources(self, tensor: Tensor) -> Iterator[nodes.Node]:
        return (edge.src for node in self._access.get(tensor.name, ()) for edge in self._state.in_edges(node))

    def _reading(self, tensor: Tensor) -> list[dace.sdfg.graph.MultiConnectorEdge]:
        return [edge for node in self._access.get(tensor.name, ()) for edge in self._state.out_edges(node)]

    def _node_of(self, name: str) -> AccessNode:
        known = self._access.setdefault(name, [])
        if not known:
            known.append(self._state.add_access(name))
        return next((node for node in known if self._state.in_degree(node)), known[0])

    def _add(self, operator: CanonicalOperator | str | None, op: Operator) -> OperatorNode:
        """Add an operator; the fields of a canonical one are checked against its tensors."""
        if isinstance(operator, CanonicalOperator):
            operator.check(op.operands(), op.results())
        return add_operator(self._state, described(op, op.attributes), self._node_of)

    def _remove_data(self, tensor: Tensor) -> None:
        for view in self.views(tensor):
            self._remove_data(view)
        for node in self._access.pop(tensor.name, ()):
            self._state.remove_node(node)
        self._sdfg.remove_data(tensor.name, validate=False)

    def _operator(self, node: OperatorNode) -> Operator:
        return operator_of(self._state, node, self.tensor, self.tensor)
