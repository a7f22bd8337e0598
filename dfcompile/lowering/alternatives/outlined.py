"""A program of canonical operators as the map scopes that it would become, under any choice of expansions."""

from collections import ChainMap
from collections.abc import Mapping, Sequence

from msgspec import Struct

from dfcompile.canonical_dag.extraction.scopes import Array, LoweredGraph, MapScope
from dfcompile.canonical_dag.kernel import Kernel, KernelVariant
from dfcompile.errors import UnsupportedOpError, together
from dfcompile.frontend import ChosenExpansion, Program
from dfcompile.lowering.canonical_fragment import Border, CanonicalFragment
from dfcompile.lowering.choice_check import explained
from dfcompile.lowering.expansion import Expansion, ExpansionTable
from dfcompile.lowering.nests.program import array_of, graph_of_scopes, renamed
from dfcompile.lowering.node import CanonicalNode, Operator
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.program_nodes import onnx_operators
from dfcompile.lowering.tensor import declared_array, free_name
from dfcompile.options import Choice, Choices
from dfcompile.records import replace


class Outline(Struct, frozen=True, eq=False):
    """A model under one choice of expansions, as far as its tasks depend on it.

    Attributes:
        chosen: the expansion of every operator, level after level.
        graph: map scopes and arrays; of kernels perhaps no more than the type of operator.
        inputs: arrays of it that whoever runs the model gives.
    """

    chosen: tuple[ChosenExpansion, ...]
    graph: LoweredGraph
    inputs: frozenset[str]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Arrays that are read and neither made nor given: constants."""
        made = self.inputs.union(access.array for scope in self.graph.scopes for access in scope.writes)
        read = dict.fromkeys(access.array for scope in self.graph.scopes for access in scope.reads)
        return tuple(name for name in read if name not in made)


class OutlinedModel:
    """A program of level 0; what is equal under several choices is lowered once, each operator for itself."""

    def __init__(self, program: Program, table: ExpansionTable) -> None:
        self._program, self._table = program, table
        self._operators = tuple(onnx_operators(program))
        self._names = frozenset(program.sdfg.arrays)
        self._outputs = frozenset(port.array for port in program.outputs)
        self._inputs = frozenset(port.array for port in program.inputs)
        given = (*(port.array for port in program.inputs), *program.parameters)
        self._given = {name: declared_array(program.sdfg, name) for name in given}
        self._outlined: dict[tuple[int, str, frozenset[str]], OutlinedOperator] = {}

    def outline(self, choices: Sequence[Choice]) -> Outline:
        """Return the model under a choice of expansions.

        Raises:
            UserError: an operator has a form that its expansion does not take; all such operators are named.
            PluginError: an expansion of a third party failed.
        """
        program, of_operators = _PlacedOperators(self._given), Choices(choices)
        chosen: list[ChosenExpansion] = []
        unsupported: list[UnsupportedOpError] = []
        for number, op in enumerate(self._operators):
            try:
                found = self._table.select(op, of_operators.about(op.origin, op.name))
                # On whose its operands are it depends how an operator is lowered that ends the model.
                ends = any(tensor.name in self._outputs for tensor in op.results())
                program.place(self._outline_of(number, found, program.owned(op) if ends else frozenset()))
            except UnsupportedOpError as error:
                border = Border(self._names, self._outputs, program.owned(op))
                unsupported.append(explained(error, op, self._table, choices, border))
                program.leave_out(op)
                continue
            chosen.append(ChosenExpansion(op.name, op.op_type, op.origin, found.name))
        if unsupported:
            raise together(unsupported)
        scopes, arrays = list[MapScope](), dict[str, Array]()
        for outlined, roots in program.placed:
            for number, node in enumerate(outlined.outline.nodes):
                found = self._table.select(node, of_operators.about(node.origin, node.name))
                chosen.append(ChosenExpansion(node.name, node.op_type, node.origin, found.name))
                part = outlined.scopes(number, found, roots)
                scopes.extend(part.scopes)
                arrays.update(part.arrays)
        graph = graph_of_scopes(self._program.name, tuple(scopes), ChainMap(arrays, program.arrays))
        return Outline((*self._program.chosen, *chosen), graph, self._inputs)

    def _outline_of(self, number: int, found: Expansion, owned: frozenset[str]) -> "OutlinedOperator":
        key = number, found.name, owned
        if key not in self._outlined:
            op, border = self._operators[number], Border(self._names, self._outputs, owned)
            self._outlined[key] = OutlinedOperator(op, found.outline(op, border), is_own=found.is_own)
        return self._outlined[key]


_VARIANT = KernelVariant.ELEMENTWISE_INPUT1  # of kernels of which no more is known than the type of operator


class OutlinedOperator:
    """An operator of level 0 under an expansion; what it becomes is outlined once under each expansion asked for."""

    def __init__(self, op: Operator, outline: CanonicalFragment, *, is_own: bool) -> None:
        self.op, self.outline, self._is_own = op, outline, is_own
        self._made: dict[tuple[int, str], LoweredGraph] = {}
        self._scopes: dict[tuple[int, str, tuple[str, ...]], LoweredGraph] = {}

    def scopes(self, number: int, found: Expansion, roots: Mapping[str, str]) -> LoweredGraph:
        """Return the scopes of a canonical operator, and the arrays that these alone touch.

        Args:
            number: of the canonical operator.
            found: its expansion.
            roots: arrays of the whole program by the names that the operator gives them.
        """
        node = self.outline.nodes[number]
        operands = {tensor.name: roots[tensor.name] for tensor in (*node.operands(), *node.results())}
        key = number, found.name, tuple(operands.values())
        if key not in self._scopes:
            if (number, found.name) not in self._made:
                is_checked = not (found.is_own and self._is_own)
                self._made[number, found.name] = outline_of(node, found, is_checked=is_checked)
            made = self._made[number, found.name]
            names = {name: operands.get(name) or f"{node.name}:{name}" for name in made.arrays}
            accesses = (access for scope in made.scopes for access in (*scope.reads, *scope.writes))
            added = (name for name in {access.array: None for access in accesses} if name not in operands)
            arrays = {names[name]: replace(made.arrays[name], name=names[name]) for name in added}
            # What tasks take depends on the type of operator alone; operands and extents are those of the scopes.
            kernel = Kernel(node.name, node.op_type, node.origin, found.name, _VARIANT, *(1, 1, 1, 1), (), ())
            scopes = tuple(replace(renamed(scope, names), kernel=kernel) for scope in made.scopes)
            self._scopes[key] = LoweredGraph(node.name, scopes, arrays)
        return self._scopes[key]


class _PlacedOperators:
    """The operators of a model under one choice, one after another, with names of arrays that only one of them has."""

    def __init__(self, given: Mapping[str, Array]) -> None:
        self.arrays = dict(given)
        self._roots = {name: name for name in given}
        self.placed: list[tuple[OutlinedOperator, Mapping[str, str]]] = []

    def owned(self, op: Operator) -> frozenset[str]:
        """Return the operands of an operator that other operators wrote as arrays of their own."""
        own = (tensor.name for tensor in op.operands() if self._roots[tensor.name] == tensor.name)
        return frozenset(name for name in own if self.arrays[name].is_transient)

    def leave_out(self, op: Operator) -> None:
        """Note that the results of an operator are there, to see what comes after it."""
        for tensor in op.results():
            self.arrays[tensor.name] = array_of(tensor, is_transient=True, is_materialised=False)
            self._roots[tensor.name] = tensor.name

    def place(self, outlined: OutlinedOperator) -> None:
        """Add an operator behind those that it depends on."""
        op, outline = outlined.op, outlined.outline
        roots = {tensor.name: self._roots[tensor.name] for tensor in op.operands()}
        for name, array in outline.arrays.items():
            roots[name] = free_name(name, self.arrays)
            self.arrays[roots[name]] = array if roots[name] == name else replace(array, name=roots[name])
        for view, shown in outline.views.items():
            roots[view] = roots[shown]
        for name in outline.given:
            root = roots[name]
            self.arrays[root] = replace(self.arrays[root], is_transient=False, is_materialised=True)
        self._roots.update((tensor.name, roots[tensor.name]) for tensor in op.results())
        self.placed.append((outlined, roots))


def outline_of(op: CanonicalNode[CanonicalOperator], found: Expansion, *, is_checked: bool) -> LoweredGraph:
    """Return what an expansion builds of an operator: scopes without a kernel, and arrays.

    Operands and results count as materialised. Every index is looked at if it is to be checked.

    Raises:
        UserError: a form that it does not take, or a call of a library, which is no alternative to what is scheduled.
        PluginError: it is a third party's, and failed.
    """
    ends = (*op.operands(), *op.results())
    border = {one.name: array_of(one, is_transient=False, is_materialised=True) for one in ends}
    built = found.nests(op, border, is_checked=is_checked)
    arrays = {**border, **built.arrays}
    for nest in built.nests:
        op.refuse_if(nest.library, f"a call of {nest.library} against canonical tasks")
    return LoweredGraph(op.name, tuple(nest.scope(arrays) for nest in built.nests), arrays)
