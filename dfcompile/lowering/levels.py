"""Lowers a program level by level: ONNX operators, canonical operators, map scopes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from dfcompile.errors import InternalError, OperatorFieldError, UserError, nearest
from dfcompile.frontend import ChosenExpansion, Coverage, Level, OperatorNode, Program
from dfcompile.lowering.canonical_fragment import CanonicalFragment
from dfcompile.lowering.expansion import Expansion
from dfcompile.lowering.map_fragment import MapFragment
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operator import Operator
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.program_builder import ProgramBuilder
from dfcompile.lowering.program_nodes import canonical_nodes, onnx_operators
from dfcompile.lowering.selection import Choice, ExpansionTable

Fragment: TypeAlias = CanonicalFragment | MapFragment


def lower_to_canonical(program: Program, table: ExpansionTable, choices: Sequence[Choice] = ()) -> Program:
    """Rewrite every ONNX operator to canonical operators and views.

    Raises:
        UnsupportedOpError: naming the node that has no expansion, or a form of it that its expansion does not cover.
        OperatorFieldError: naming the expansion that gives a canonical operator fields that it has not.
    """
    _expect(program, Level.ONNX)
    builder = ProgramBuilder(program)
    coverage: dict[str, Coverage] = {}
    chosen = []
    for op in onnx_operators(program, builder):
        fragment = CanonicalFragment(builder, op)
        found = table.select(op, choices)
        _rewrite(found, op, fragment)
        chosen.append(ChosenExpansion(op.name, op.op_type, op.origin, found.name))
        coverage[op.origin] = Coverage.COSTED if fragment.operators_count else Coverage.VIEW
    nodes = tuple(replace(node, coverage=coverage.get(node.name, node.coverage)) for node in program.nodes)
    return builder.finish(Level.CANONICAL, nodes, (*program.chosen, *chosen))


def lower_to_maps(program: Program, table: ExpansionTable, choices: Sequence[Choice] = ()) -> Program:
    """Rewrite every canonical operator to map scopes: one state, nothing but map scopes at top level.

    Raises:
        UnsupportedOpError: naming the operator that has no expansion.
        OperatorFieldError: naming the node whose attributes are not those of its operator.
    """
    _expect(program, Level.CANONICAL)
    builder = ProgramBuilder(program)
    chosen = []
    for op in canonical_nodes(program, table, builder):
        found = table.select(op, choices)
        chosen.append(ChosenExpansion(op.name, op.op_type, op.origin, found.name))
        builder.adopt_outputs(program.sdfg, op.inputs, op.outputs)
        fragment = MapFragment(builder, op)
        _rewrite(found, op, fragment)
        fragment.finish(found.name)
    return builder.finish(Level.MAPS, program.nodes, (*program.chosen, *chosen))


def check_choices(choices: Sequence[Choice], table: ExpansionTable, programs: Sequence[Program]) -> None:
    """Check that every choice names a registered expansion and fits an operator of the model.

    Args:
        choices: of the user.
        table: what is registered.
        programs: the levels at which operators are looked for.

    Raises:
        UserError: naming the choice, with the nearest name that exists.
    """
    present = {(node.origin, node.op_type) for program in programs for node in _operator_nodes(program)}
    origins = {origin for origin, _ in present}
    for choice in choices:
        table.check(choice)
        if choice.origin and choice.origin not in origins:
            raise UserError(f"expansion '{choice}': no operator {choice.origin!r}{nearest(choice.origin, origins)}")
        found = {op_type for origin, op_type in present if choice.origin in ("", origin)}
        if choice.op_type not in found:
            where = f"operator {choice.origin!r}" if choice.origin else "the model"
            raise UserError(f"expansion '{choice}': {where} has no {choice.op_type}{nearest(choice.op_type, found)}")


def _expect(program: Program, level: Level) -> None:
    if program.level is not level:
        raise InternalError(f"program {program.name!r}: level {program.level.name} against {level.name}")


def _operator_nodes(program: Program) -> Iterator[OperatorNode]:
    return (node for node in program.sdfg.start_state.nodes() if isinstance(node, OperatorNode))


def _rewrite(found: Expansion, op: Operator | CanonicalNode[CanonicalOperator], fragment: Fragment) -> None:
    """Let an expansion build; a field that its author misspelt is told as its fault, not the model's."""
    try:
        found.rewrite(op, fragment)
    except OperatorFieldError as error:
        where = f"{found.module}.{found.rewrite.__name__}"
        raise OperatorFieldError(f"node {op.origin!r}: in expansion {where}: {error}") from error
