"""Builds the SDFG of the next level: the one mutable class of this stage."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

import dace
import numpy as np
import numpy.typing as npt
from dace.sdfg.nodes import AccessNode
from dace.sdfg.state import SDFGState

from dfcompile.errors import InternalError
from dfcompile.frontend import (
    CANONICAL,
    ChosenExpansion,
    Level,
    ModelNode,
    NodeCopies,
    Program,
    Prototype,
    WholeMemlets,
    input_connector,
    output_connector,
    scalar_type,
)
from dfcompile.frontend.sdfg.numbering import number_elements
from dfcompile.lowering.declared import declared_tensor
from dfcompile.lowering.node import Node
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.tensor import Tensor
from dfcompile.records import replace

_KEPT = 4096  # prototypes of arrays: some MB


class ProgramBuilder:
    """Collects arrays, operators and map scopes of one state, then freezes them as a `Program`.

    Every array has a *current* access node: the one that holds what has been written so far.
    """

    def __init__(self, program: Program) -> None:
        self._name = program.name
        self._applied = program.applied
        self._outputs = list(program.outputs)
        self._inputs = program.inputs
        self._parameters = dict(program.parameters)
        self._constants = {*program.parameters, *(port.array for port in program.inputs if port.is_constant)}
        self.sdfg = dace.SDFG(program.sdfg.name)
        self.whole = WholeMemlets(self.sdfg)
        self.nodes = NodeCopies()
        self.state: SDFGState = self.sdfg.add_state("main", is_start_block=True)
        self._current: dict[str, AccessNode] = {}
        self._views: dict[str, str] = {}
        self._renamed: dict[str, tuple[Tensor, tuple[int, ...]]] = {}  # outputs that another array became
        self._reserved = frozenset(program.sdfg.arrays)  # names that this level may still give to arrays
        for port in program.inputs:
            self._copy_array(program.sdfg, port.array)
        for name in program.parameters:
            self._copy_array(program.sdfg, name)

    def _copy_array(self, source: dace.SDFG, name: str) -> None:
        if name not in self.sdfg.arrays:
            self.sdfg.add_datadesc(name, copy.copy(source.arrays[name]))

    def free_name(self, name: str) -> str:
        """Return the name, or one with underscores behind it that no array has or is going to have."""
        while name in self._reserved or name in self.sdfg.arrays:
            name += "_"
        return name

    def tensor(self, name: str) -> Tensor:
        """Return what expansions see of an array; of an output that another array became, a view of that one."""
        if name in self._renamed:
            source, view_shape = self._renamed.pop(name)
            return self.add_view(source, name, view_shape)
        found = declared_tensor(self.sdfg, name)
        return Tensor(name, found.shape, found.dtype, self._parameters.get(name), name in self._constants)

    def add_array(self, name: str, shape: Iterable[int], dtype: str, *, materialised: bool = False) -> Tensor:
        """Add a transient array (a model output is not transient) and return it.

        Raises:
            InternalError: the name is taken.
        """
        if name in self.sdfg.arrays:
            raise InternalError(f"array {name!r}: added twice")
        like = _array(tuple(shape), dtype, not self._is_output(name), materialised)
        self.sdfg.add_datadesc(name, like.copy())
        return self.tensor(name)

    def adopt_outputs(self, source: dace.SDFG, op: Node) -> None:
        """Add the arrays that an operator writes as they were declared at the level before."""
        constant = bool(op.inputs) and all(tensor.is_constant for tensor in op.operands())
        for tensor in op.outputs:
            if tensor is not None:
                self._copy_array(source, tensor.name)
                if constant:
                    self._constants.add(tensor.name)

    def add_parameter(self, name: str, value: npt.NDArray[np.generic]) -> Tensor:
        """Add a constant array that lowering itself computed."""
        tensor = self.add_array(name, value.shape, value.dtype.name)
        self.sdfg.arrays[name].transient = False
        frozen = value.copy()
        frozen.setflags(write=False)
        self._parameters[name] = frozen
        self._constants.add(name)
        return Tensor(name, tensor.shape, tensor.dtype, frozen, is_constant=True)

    def add_view(self, source: Tensor, name: str, shape: Iterable[int], dtype: str | None = None) -> Tensor:
        """Add a view: the same elements in the same order under another shape, or the same bits as another type.

        A model output cannot be a view: its producer's array becomes the output instead, and the output port keeps
        the model's shape.
        """
        if self._is_output(name) and self._is_owned(source.name):
            self._outputs = [replace(port, array=source.name) if port.array == name else port for port in self._outputs]
            self.sdfg.arrays[source.name].transient = False
            # A view that nobody reads would be invalid: it is made when it is asked for.
            self._renamed[name] = (source, tuple(shape))
            return source
        if self._is_output(name):
            raise InternalError(f"view {name!r}: of an array of the model's border")
        same = self.sdfg.arrays[source.name].dtype
        self.sdfg.add_view(name, list(shape), same if dtype in (None, source.dtype) else scalar_type(dtype))
        node = self._add_access(name)
        full = self.whole.of(source.name)
        self.state.add_edge(self.read(source.name), None, node, "views", full)
        self._views[name] = source.name
        if source.is_constant:
            self._constants.add(name)
        return self.tensor(name)

    def can_be_view(self, source: Tensor, target: Tensor) -> bool:
        """Whether `add_view` can give ``source`` the name of ``target``."""
        if not self._is_output(target.name):
            return True
        return self._is_owned(source.name) and source.dtype == target.dtype

    def read(self, name: str) -> AccessNode:
        """Return the access node to read an array from."""
        return self.write(name)

    def write(self, name: str) -> AccessNode:
        """Return the access node to write (a part of) an array to."""
        if name not in self._current:
            self._add_access(name)
        return self._current[name]

    def rewrite(self, name: str) -> tuple[AccessNode, AccessNode]:
        """Return the array's current access node and a new one that now takes its place."""
        before = self.write(name)
        return before, self._add_access(name)

    def _add_access(self, name: str) -> AccessNode:
        node = self.nodes.access(name)
        self.state.add_node(node)
        self._current[name] = node
        return node

    def check_results(self, op: Node) -> None:
        """Check that every result of an operator that was lowered is there, as the operator has it.

        Raises:
            VerificationError: one is not written, or has another shape or element type.
        """
        for tensor in op.outputs:
            if tensor is None or tensor.name in self._renamed:
                continue
            node = self._current.get(tensor.name)
            is_written = node is not None and self.state.in_degree(node) > 0
            op.check_result(tensor, declared_tensor(self.sdfg, tensor.name) if is_written else None)

    def add_canonical(
        self, named: tuple[str, str], operator: CanonicalOperator, operands: Sequence[Tensor], results: Sequence[Tensor]
    ) -> None:
        """Add a canonical operator of a name and an origin, and arrays for those results that have none."""
        for tensor in results:
            if tensor.name not in self.sdfg.arrays:
                self.add_array(tensor.name, tensor.shape, tensor.dtype)
        name, origin = named
        node = self.nodes.operator(
            name,
            dialect=CANONICAL,
            op_type=type(operator).__name__,
            origin=origin,
            attributes=operator.attributes(),
            inputs=[input_connector(position) for position in range(len(operands))],
            outputs=[output_connector(position) for position in range(len(results))],
        )
        self.state.add_node(node)
        for position, tensor in enumerate(operands):
            self.state.add_edge(
                self.read(tensor.name), None, node, input_connector(position), self.whole.of(tensor.name)
            )
        for position, tensor in enumerate(results):
            self.state.add_edge(
                node, output_connector(position), self.write(tensor.name), None, self.whole.of(tensor.name)
            )
        # Results depend on parameters alone if all operands do.
        if operands and all(tensor.name in self._constants for tensor in operands):
            self._constants.update(tensor.name for tensor in results)

    def _is_output(self, name: str) -> bool:
        return any(port.array == name for port in self._outputs)

    def _is_owned(self, name: str) -> bool:
        return bool(self.sdfg.arrays[name].transient) and name not in self._views

    def finish(self, level: Level, nodes: tuple[ModelNode, ...], chosen: tuple[ChosenExpansion, ...] = ()) -> Program:
        """Drop what nothing uses, validate and freeze."""
        used = {node.data for node in self.state.data_nodes()}
        keep = used | {port.array for port in (*self._inputs, *self._outputs)}
        for name in [name for name in self.sdfg.arrays if name not in keep]:
            self.sdfg.remove_data(name, validate=False)
        parameters: Mapping[str, npt.NDArray[np.generic]] = MappingProxyType(
            {name: value for name, value in self._parameters.items() if name in used}
        )
        number_elements(self.sdfg)
        outputs = tuple(self._outputs)
        return Program(self._name, level, self.sdfg, self._inputs, outputs, parameters, nodes, chosen, self._applied)


@lru_cache(_KEPT)
def _array(shape: tuple[int, ...], dtype: str, transient: bool, materialised: bool) -> Prototype[dace.data.Array]:  # noqa: FBT001
    storage = dace.StorageType.CPU_Heap if materialised else dace.StorageType.Default
    return Prototype(dace.data.Array(scalar_type(dtype), shape, transient=transient, storage=storage))
