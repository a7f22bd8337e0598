"""Lowers a program level by level: ONNX operators, canonical operators, map scopes."""

from collections.abc import Mapping, Sequence

from dfcompile.errors import InternalError, UnsupportedOpError, together
from dfcompile.frontend import ONNX, ChosenExpansion, Coverage, Level, Program
from dfcompile.host.stages import as_they_come
from dfcompile.lowering.declared import declared_array
from dfcompile.lowering.kernels import kernel_of
from dfcompile.lowering.nests.program import NestProgram, OperatorNests, View
from dfcompile.lowering.program_nodes import canonical_nodes, onnx_operators, operators_count
from dfcompile.lowering.selection import ExpansionTable
from dfcompile.options import Choice
from dfcompile.plugins import faults_of, is_own
from dfcompile.records import replace


def lower_to_canonical(program: Program, table: ExpansionTable, choices: Sequence[Choice] = ()) -> Program:
    """Rewrite every ONNX operator to canonical operators and views.

    Raises:
        UnsupportedOpError: naming all nodes that have no expansion, or a form that their expansions do not cover.
        OperatorFieldError: an expansion of ours gives a canonical operator fields that it has not; one of a third party
            raises a PluginError then.
    """
    from dfcompile.lowering.program_builder import ProgramBuilder  # needs DaCe

    _expect(program, Level.ONNX)
    builder = ProgramBuilder(program)
    coverage: dict[str, Coverage] = {}
    chosen = []
    constants: set[str] = set()
    unsupported: list[UnsupportedOpError] = []
    operators = onnx_operators(program, builder.add_view, constants)
    for op in as_they_come(operators, operators_count(program)):
        try:
            found = table.select(op, choices)
            fragment = found.outline(op, builder.border(op))
        except UnsupportedOpError as error:
            unsupported.append(error)
            builder.adopt_outputs(program.sdfg, op)  # to see what comes after it
            continue
        builder.place(op, fragment)
        constants.update(fragment.constants)
        chosen.append(ChosenExpansion(op.name, op.op_type, op.origin, found.name))
        coverage[op.origin] = Coverage.COSTED if fragment.nodes else Coverage.VIEW
    if unsupported:
        raise together(unsupported)
    nodes = tuple(replace(node, coverage=coverage.get(node.name, node.coverage)) for node in program.nodes)
    return builder.finish(Level.CANONICAL, nodes, (*program.chosen, *chosen))


def lower_to_nests(program: Program, table: ExpansionTable, choices: Sequence[Choice] = ()) -> NestProgram:
    """Rewrite every canonical operator to loop nests.

    Raises:
        UnsupportedOpError: naming the operator that has no expansion.
        UserError: naming a node whose attributes are not the fields of its operator.
    """
    _expect(program, Level.CANONICAL)
    arrays = {name: declared_array(program.sdfg, name) for name in program.sdfg.arrays}
    steps: list[OperatorNests | View] = []
    chosen = []
    made_by = _third_party_expansions(program, table)
    for op in as_they_come(canonical_nodes(program, table, steps.append), operators_count(program)):
        found = table.select(op, choices)
        chosen.append(ChosenExpansion(op.name, op.op_type, op.origin, found.name))
        maker = made_by.get(op.origin, found.origin)
        with faults_of("expansion", maker):
            built = found.nests(op, arrays, is_checked=not (found.is_own and is_own(maker)))
            written = {nest.write.tensor.name for nest in built.nests}
            for tensor in op.results():
                op.check_result(tensor, tensor if tensor.name in written else None)
            kernel = kernel_of(op, found.name, built.nests)
        steps.append(OperatorNests(op, kernel, tuple(built.nests), tuple(built.added)))
        arrays |= built.arrays
    return NestProgram(program, (*program.chosen, *chosen), tuple(steps), arrays, program.applied)


def lower_to_maps(program: Program, table: ExpansionTable, choices: Sequence[Choice] = ()) -> Program:
    """Rewrite every canonical operator to map scopes of an SDFG: one state, nothing but map scopes at top level.

    Raises:
        UnsupportedOpError: naming the operator that has no expansion.
        UserError: naming a node whose attributes are not the fields of its operator.
    """
    from dfcompile.lowering.nests.sdfg import sdfg_program  # needs DaCe

    return sdfg_program(lower_to_nests(program, table, choices))


def _third_party_expansions(program: Program, table: ExpansionTable) -> Mapping[str, str]:
    """Return which expansion of a third party made the operators of an origin: what is wrong in them is its fault."""
    used = (
        (choice.origin, table.by_operator.get((ONNX, choice.op_type), {}).get(choice.name)) for choice in program.chosen
    )
    return {origin: found.origin for origin, found in used if found is not None and not found.is_own}


def _expect(program: Program, level: Level) -> None:
    if program.level is not level:
        raise InternalError(f"program {program.name!r}: level {program.level.name} against {level.name}")
