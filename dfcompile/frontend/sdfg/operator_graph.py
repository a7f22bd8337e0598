"""An SDFG of operator nodes in one state, as it grows: one array per value, one access node per array."""

import copy
from collections.abc import Iterable, Mapping, Sequence

import dace
from dace.config import Config
from dace.sdfg.nodes import AccessNode
from msgspec import Struct

from dfcompile.frontend.onnx.draft import Constants
from dfcompile.frontend.program import Level, ModelNode, Port, Program
from dfcompile.frontend.sdfg.dialects import AttributeValue, input_connector, output_connector
from dfcompile.frontend.sdfg.element_copies import NodeCopies, WholeMemlets, number_elements
from dfcompile.frontend.sdfg.identifiers import safe_identifier
from dfcompile.frontend.sdfg.operator_node import scalar_type
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
        self._arrays: dict[tuple[tuple[int, ...], str, bool], dace.data.Array] = {}
        self._nodes, self._whole = NodeCopies(), WholeMemlets(self._sdfg)

    def array(self, name: str, shape: tuple[int, ...], dtype: str, *, is_transient: bool) -> None:
        """Add an array."""
        like = (shape, dtype, is_transient)
        if like not in self._arrays:
            self._arrays[like] = dace.data.Array(scalar_type(dtype), shape, transient=is_transient)
        self._sdfg.add_datadesc(name, copy.copy(self._arrays[like]))  # a copy is made faster than a new one

    def add(self, operator: Operator) -> None:
        """Add an operator behind what writes its operands."""
        read = {input_connector(at): array for at, array in enumerate(operator.operands) if array}
        written = {output_connector(at): array for at, array in enumerate(operator.results) if array}
        node = self._nodes.operator(
            operator.label,
            op_type=operator.op_type,
            origin=operator.origin,
            attributes=operator.attributes,
            inputs=tuple(read),
            outputs=tuple(written),
        )
        self._state.add_node(node)
        for array in (*read.values(), *written.values()):
            if array not in self._access:
                self._access[array] = self._nodes.access(array)
                self._state.add_node(self._access[array])
        for connector, array in read.items():
            self._state.add_edge(self._access[array], None, node, connector, self._whole.of(array))
        for connector, array in written.items():
            self._state.add_edge(node, connector, self._access[array], None, self._whole.of(array))

    def program(
        self, inputs: Iterable[Port], outputs: Iterable[Port], parameters: Constants, nodes: Iterable[ModelNode]
    ) -> Program:
        """Return the program of level 0; elements of the SDFG are numbered."""
        number_elements(self._sdfg)
        return Program(self._sdfg.name, Level.ONNX, self._sdfg, tuple(inputs), tuple(outputs), parameters, tuple(nodes))
