"""A program of canonical operators as the map scopes that it would become, under any choice of expansions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import dace
import numpy as np

from dfcompile.canonical_dag.extraction.scopes import Access, Array, LoweredGraph, MapScope
from dfcompile.frontend import ONNX, ChosenExpansion, Program
from dfcompile.lowering.alternatives.outline import OutlineFragment
from dfcompile.lowering.expansion import Expansion
from dfcompile.lowering.levels import lower_to_canonical
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.program_nodes import canonical_nodes, onnx_operators
from dfcompile.lowering.scope_check import check_scopes
from dfcompile.lowering.selection import ExpansionTable
from dfcompile.options import Choice


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """A model under one choice of expansions, as far as its tasks depend on it.

    Attributes:
        chosen: the expansion of every operator, level after level.
        graph: map scopes and arrays; kernels may be left out.
    """

    chosen: tuple[ChosenExpansion, ...]
    graph: LoweredGraph


class OutlinedModel:
    """A program of level 0; what is equal under several choices is lowered once."""

    def __init__(self, program: Program, table: ExpansionTable) -> None:
        self._program, self._table = program, table
        self._operators = tuple(onnx_operators(program))
        self._lowered: dict[tuple[str, ...], OutlinedProgram] = {}

    def outline(self, choices: Sequence[Choice]) -> Outline:
        """Return the model under a choice of expansions.

        Raises:
            UserError: an operator has a form that its expansion does not take.
            PluginError: an expansion of a third party failed.
        """
        key = tuple(self._table.select(op, choices).name for op in self._operators)
        if key not in self._lowered:
            library = lower_to_canonical(self._program, self._table, choices)
            self._lowered[key] = OutlinedProgram(library, self._table)
        found = self._lowered[key]
        return Outline(found.chosen(choices), found.graph(choices))


class OutlinedProgram:
    """A program of level 1; each of its operators is outlined once under each expansion that is asked for."""

    def __init__(self, program: Program, table: ExpansionTable) -> None:
        self._table = table
        self._operators = tuple(canonical_nodes(program, table))
        self._chosen = program.chosen
        self._name = program.name
        self._viewed = viewed_arrays(program.sdfg)
        self._arrays = {
            name: _array(name, descriptor)
            for name, descriptor in program.sdfg.arrays.items()
            if not isinstance(descriptor, dace.data.View)
        }
        self._outlines: dict[tuple[int, str], LoweredGraph] = {}

    def chosen(self, choices: Sequence[Choice]) -> tuple[ChosenExpansion, ...]:
        """Return the expansions that led here, and those that the operators are lowered by."""
        selected = (self._table.select(op, choices).name for op in self._operators)
        named = (
            ChosenExpansion(op.name, op.op_type, op.origin, name)
            for op, name in zip(self._operators, selected, strict=True)
        )
        return (*self._chosen, *named)

    def graph(self, choices: Sequence[Choice]) -> LoweredGraph:
        """Return the map scopes and arrays of the program; kernels are left out.

        Raises:
            UserError: an operator has no such expansion, or a form that it does not take.
            PluginError: an expansion of a third party failed.
        """
        scopes: list[MapScope] = []
        arrays: dict[str, Array] = {}
        for number, op in enumerate(self._operators):
            outlined = self._outlined(number, op, self._table.select(op, choices))
            scopes.extend(outlined.scopes)
            arrays.update(outlined.arrays)
        accesses = (access for scope in scopes for access in (*scope.reads, *scope.writes))
        for name in {access.array: None for access in accesses if access.is_indirect}:
            arrays[name] = replace(arrays[name], is_materialised=True)
        return LoweredGraph(self._name, tuple(scopes), arrays)

    def _outlined(self, number: int, op: CanonicalNode[CanonicalOperator], found: Expansion) -> LoweredGraph:
        """Return the scopes of one operator, with names that arrays have in the whole program."""
        key = number, found.name
        if key not in self._outlines:
            outline = outline_of(op, found, is_checked=not (found.is_own and self._is_own(op)))
            operands = {tensor.name for tensor in (*op.inputs, *op.outputs) if tensor is not None}
            roots = {
                name: root_of(name, self._viewed) if name in operands else f"{op.name}:{name}"
                for name in outline.arrays
            }
            scopes = tuple(_renamed(scope, roots) for scope in outline.scopes)
            used = {access.array for scope in outline.scopes for access in (*scope.reads, *scope.writes)}
            arrays = {
                root: self._arrays[root] if name in operands else replace(outline.arrays[name], name=root)
                for name, root in roots.items()
                if name in used
            }
            self._outlines[key] = LoweredGraph(op.name, scopes, arrays)
        return self._outlines[key]

    def _is_own(self, op: CanonicalNode[CanonicalOperator]) -> bool:
        """Return whether what made the operator is dfcompile's."""
        makers = (
            self._table.by_operator.get((ONNX, each.op_type), {}).get(each.name)
            for each in self._chosen
            if each.origin == op.origin
        )
        return all(maker is None or maker.is_own for maker in makers)


def _renamed(scope: MapScope, names: Mapping[str, str]) -> MapScope:
    def renamed(access: Access) -> Access:
        return replace(access, array=names[access.array])

    return replace(scope, reads=tuple(map(renamed, scope.reads)), writes=tuple(map(renamed, scope.writes)))


def outline_of(op: CanonicalNode[CanonicalOperator], found: Expansion, *, is_checked: bool) -> OutlineFragment:
    """Return what an expansion builds of an operator; every index is looked at if it is to be checked.

    Raises:
        UserError: a form that it does not take.
        PluginError: it is a third party's, and failed.
    """
    if is_checked:
        return check_scopes(op, found)
    outline = OutlineFragment(op)
    found.apply(op, outline)
    return outline


def viewed_arrays(sdfg: dace.SDFG) -> Mapping[str, str]:
    """Return what each view is a view of."""
    state = sdfg.start_state
    return {edge.dst.data: edge.src.data for edge in state.edges() if edge.dst_conn == "views"}


def root_of(array: str, viewed: Mapping[str, str]) -> str:
    """Return the array that a view shows, in the end."""
    while array in viewed:
        array = viewed[array]
    return array


def _array(name: str, descriptor: dace.data.Data) -> Array:
    shape = tuple(int(size) for size in descriptor.shape)
    return Array(
        name=name,
        shape=shape,
        strides=tuple(prod(shape[axis + 1 :]) for axis in range(len(shape))),
        element_bytes=int(np.dtype(descriptor.dtype.type).itemsize),
        is_transient=bool(descriptor.transient),
        is_materialised=not descriptor.transient or descriptor.storage == dace.StorageType.CPU_Heap,
    )
