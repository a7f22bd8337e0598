"""An SDFG of operator nodes in one state, as it grows: one array per value, one access node per array."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import dace
from dace.config import Config
from dace.sdfg.nodes import AccessNode
from dace.sdfg.state import SDFGState
from msgspec import Struct

from dfcompile.frontend.onnx.draft import Constants
from dfcompile.frontend.program import Level, ModelNode, Port, Program
from dfcompile.frontend.sdfg.dialects import ONNX, AttributeValue, input_connector, output_connector
from dfcompile.frontend.sdfg.element_copies import NodeCopies, WholeMemlets, array_copy, number_elements
from dfcompile.frontend.sdfg.identifiers import safe_identifier
from dfcompile.frontend.sdfg.operator_node import OperatorNode
from dfcompile.host.dace_guard import NOWHERE


def apply_dace_settings() -> None:
    """Set DaCe's process-wide configuration; doing it again changes nothing.

    No source lines, no transformation history, no files in the current folder.
    Source lines of nodes cost a walk over the call stack for each node, the history a copy of the SDFG for each
    transformation, and DaCe's own build folder is in the current one, where anybody may have put something (it is
    set here once more for those who had imported DaCe before).
    """
    Config.set("compiler", "lineinfo", value="none")
    Config.set("store_history", value=False)
    Config.set("default_build_folder", value=NOWHERE)


class Operator(Struct, frozen=True):
    """An operator of level 0.

    Attributes:
        label: unique.
        op_type: such as ``Conv``.
        origin: name of the user's operator.
        operands: arrays by position; one that is omitted is empty.
        results: the same.
        attributes: by name.
    """

    label: str
    op_type: str
    origin: str
    operands: Sequence[str]
    results: Sequence[str]
    attributes: Mapping[str, AttributeValue]


def add_operator(
    state: SDFGState, operator: Operator, dialect: str, access: Callable[[str], AccessNode], whole: WholeMemlets
) -> OperatorNode:
    """Add an operator between arrays to a state, and return its node.

    Args:
        state: to add it to.
        operator: the operator.
        dialect: of the operator.
        access: gives the access node of an array.
        whole: of the state's program.
    """
    read = {input_connector(at): array for at, array in enumerate(operator.operands) if array}
    written = {output_connector(at): array for at, array in enumerate(operator.results) if array}
    words = {"dialect": dialect, "op_type": operator.op_type, "origin": operator.origin}
    attributes, inputs, outputs = operator.attributes, tuple(read), tuple(written)
    node = NodeCopies().operator(operator.label, attributes=attributes, inputs=inputs, outputs=outputs, **words)
    state.add_node(node)
    for connector, array in read.items():
        state.add_edge(access(array), None, node, connector, whole.of(array))
    for connector, array in written.items():
        state.add_edge(node, connector, access(array), None, whole.of(array))
    return node


class OperatorGraph:
    """Arrays and operators so far."""

    def __init__(self, name: str) -> None:
        """Begin.

        Args:
            name: any text; the SDFG gets an identifier near to it.
        """
        apply_dace_settings()
        self._sdfg = dace.SDFG(safe_identifier(name))
        self._state = self._sdfg.add_state("main")
        self._access: dict[str, AccessNode] = {}
        self._whole = WholeMemlets(self._sdfg)

    def array(self, name: str, shape: tuple[int, ...], dtype: str, *, is_transient: bool) -> None:
        """Add an array."""
        self._sdfg.add_datadesc(name, array_copy(shape, dtype, is_transient=is_transient))

    def add(self, operator: Operator) -> None:
        """Add an operator behind what writes its operands."""
        add_operator(self._state, operator, ONNX, self._node_of, self._whole)

    def _node_of(self, array: str) -> AccessNode:
        if array not in self._access:
            self._access[array] = NodeCopies().access(array)
            self._state.add_node(self._access[array])
        return self._access[array]

    def program(
        self, inputs: Iterable[Port], outputs: Iterable[Port], parameters: Constants, nodes: Iterable[ModelNode]
    ) -> Program:
        """Return the program of level 0; elements of the SDFG are numbered."""
        number_elements(self._sdfg)
        return Program(self._sdfg.name, Level.ONNX, self._sdfg, tuple(inputs), tuple(outputs), parameters, tuple(nodes))
