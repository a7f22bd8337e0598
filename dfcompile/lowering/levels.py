"""Lowers a program level by level: ONNX operators, canonical operators, loop nests, map scopes.

Level 2 has two forms: loop nests, or the SDFG that passes made of them.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from dfcompile.canonical_dag import Kernel, KernelLoop, KernelVariant
from dfcompile.canonical_dag.extraction.scopes import LoweredGraph
from dfcompile.errors import InternalError, UnsupportedOpError, together
from dfcompile.frontend import ONNX, ChosenExpansion, Coverage, Level, Program
from dfcompile.host.stages import as_they_come
from dfcompile.lowering.choice_check import explained
from dfcompile.lowering.expansion import ExpansionTable
from dfcompile.lowering.lowering_pass import LoweringPass, apply_passes, of_level
from dfcompile.lowering.nests.program import Nest, NestProgram, OperatorNests, View
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operators import CanonicalOperator, Contraction
from dfcompile.lowering.operators.loop_nest import kernel_loops
from dfcompile.lowering.program_nodes import canonical_nodes, onnx_operators, operator_nodes
from dfcompile.lowering.tensor import declared_array
from dfcompile.options import Choice, Choices
from dfcompile.plugins import faults_of, is_own
from dfcompile.records import replace

LevelTwo: TypeAlias = NestProgram | Program


def lower_to_canonical(program: Program, table: ExpansionTable, choices: Sequence[Choice] = ()) -> Program:
    """Rewrite every ONNX operator to canonical operators and views.

    Raises:
        UnsupportedOpError: naming all nodes that have no expansion, or a form that their expansions do not cover.
        OperatorFieldError: a built-in expansion made a canonical operator with wrong fields.
        PluginError: an expansion of a third party did.
    """
    from dfcompile.lowering.program_builder import ProgramBuilder  # needs DaCe

    _expect(program, Level.ONNX)
    builder = ProgramBuilder(program)
    coverage: dict[str, Coverage] = {}
    chosen = []
    constants: set[str] = set()
    unsupported: list[UnsupportedOpError] = []
    by_operator = Choices(choices)
    operators = onnx_operators(program, builder.add_view, constants)
    for op in as_they_come(operators, len(operator_nodes(program))):
        try:
            expansion = table.select(op, by_operator.about(op.origin, op.name))
            fragment = expansion.outline(op, builder.border(op))
        except UnsupportedOpError as error:
            unsupported.append(explained(error, op, table, choices, builder.border(op)))
            builder.adopt_outputs(program.sdfg, op)  # to report unsupported operators after it as well
            continue
        builder.place(op, fragment)
        constants.update(fragment.constants)
        chosen.append(ChosenExpansion(op.name, op.op_type, op.origin, expansion.name))
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
    # An error in a canonical operator is blamed on the third party whose expansion of level 1 made it, if one did.
    makers = ((past.origin, table.by_operator.get((ONNX, past.op_type), {}).get(past.name)) for past in program.chosen)
    third_parties = {origin: maker.origin for origin, maker in makers if maker is not None and not maker.is_own}
    by_operator = Choices(choices)
    for op in as_they_come(canonical_nodes(program, table, steps.append), len(operator_nodes(program))):
        expansion = table.select(op, by_operator.about(op.origin, op.name))
        chosen.append(ChosenExpansion(op.name, op.op_type, op.origin, expansion.name))
        at_fault = third_parties.get(op.origin, expansion.origin)
        with faults_of("expansion", at_fault):
            built = expansion.nests(op, arrays, is_checked=not (expansion.is_own and is_own(at_fault)))
            written = {nest.write.tensor.name for nest in built.nests}
            for tensor in op.results():
                op.check_result(tensor, tensor if tensor.name in written else None)
            kernel = kernel_of(op, expansion.name, built.nests)
        steps.append(OperatorNests(op, kernel, tuple(built.nests), tuple(built.added)))
        arrays |= built.arrays
    return NestProgram(program, (*program.chosen, *chosen), tuple(steps), arrays, program.applied)


def lower_to_maps(program: Program, table: ExpansionTable, choices: Sequence[Choice] = ()) -> Program:
    """Rewrite every canonical operator to map scopes of an SDFG: one state, nothing but map scopes at top level.

    Raises:
        UnsupportedOpError: naming the operator that has no expansion.
        UserError: naming a node whose attributes are not the fields of its operator.
    """
    return program_of(lower_to_nests(program, table, choices))


def level_two(
    library: Program, table: ExpansionTable, choices: Sequence[Choice], passes: Sequence[LoweringPass]
) -> LevelTwo:
    """Lower a program of level 1 to nests, or to an SDFG if passes of level 2 have to rewrite it.

    Raises:
        UserError: an operator has no expansion of the chosen name, or a pass cannot be applied.
        PluginError: an expansion or a pass of a third party failed.
    """
    nests = apply_passes(lower_to_nests(library, table, choices), passes)
    return apply_passes(program_of(nests), passes) if of_level(passes, Level.MAPS) else nests


def graph_of(lowered: LevelTwo) -> LoweredGraph:
    """Return the graph of map scopes from which extraction makes the canonical DAG.

    Raises:
        UserError: it is an SDFG of another form, or calls libraries.
    """
    if isinstance(lowered, NestProgram):
        return lowered.graph
    from dfcompile.canonical_dag.extraction.sdfg_reader import read_lowered  # needs DaCe

    return read_lowered(lowered.sdfg)


def program_of(lowered: LevelTwo) -> Program:
    """Return a model on level 2 as an SDFG, which is built from its loop nests if there is none."""
    if not isinstance(lowered, NestProgram):
        return lowered
    from dfcompile.lowering.nests.sdfg import sdfg_program  # needs DaCe

    return sdfg_program(lowered)


def _expect(program: Program, level: Level) -> None:
    if program.level is not level:
        raise InternalError(f"program {program.name!r}: level {program.level.name} against {level.name}")


def kernel_of(op: CanonicalNode[CanonicalOperator], expansion: str, nests: Sequence[Nest]) -> Kernel:
    """Return the kernel of a canonical operator.

    An operator without contraction is element-wise to the back end: it touches ``m * n`` elements, as many as its map
    scopes have iterations, where n is the last dimension of its result if that divides them.

    A constant table that is read at places that depend on data, as by Gather, is no operand of the kernel: it stays in
    memory, and only the bytes that are read count.

    Args:
        op: the operator.
        expansion: name of the chosen expansion.
        nests: loop nests of the expansion.
    """
    iterations = sum(nest.iterations for nest in nests)
    tables: Counter[str] = Counter()  # bytes that are read of each
    for nest in nests:
        for table in nest.tables.values():
            tables[table.name] += nest.iterations * table.element_bytes
    in_memory = [tensor.name for tensor in op.operands() if tensor.name in tables and tensor.is_constant]
    operands = [tensor for tensor in op.operands() if tensor.name not in in_memory]
    activations = [tensor for tensor in operands if not tensor.is_constant]
    contraction = op.operator.contraction(op.operands(), op.output())
    if contraction is not None:
        weighted = len(activations) < len(operands)
        variant = KernelVariant.GEMM_INPUT1_WEIGHT if weighted else KernelVariant.GEMM_INPUT1_INPUT2
    else:
        n = op.output().shape[-1] if op.output().shape else 1
        n = n if iterations % n == 0 else 1
        contraction = Contraction(1, iterations // n, 1, n)
        paired = len(activations) > 1
        variant = KernelVariant.ELEMENTWISE_INPUT1_INPUT2 if paired else KernelVariant.ELEMENTWISE_INPUT1
    named, extents = (op.name, op.op_type, op.origin, expansion), (contraction.outer, contraction.m, contraction.k)
    tensors = tuple(tensor.name for tensor in operands), tuple(tensor.name for tensor in op.results())
    memory_bytes = sum(tables[name] for name in in_memory)
    return Kernel(*named, variant, *extents, contraction.n, *tensors, memory_bytes, _loops(op, in_memory))


def _loops(op: CanonicalNode[CanonicalOperator], in_memory: list[str]) -> tuple[KernelLoop, ...]:
    """Return the loops that may be split, without their entries for operands that stay in memory."""
    operands = op.operands()
    nest = op.operator.loop_nest(operands, op.output())
    if nest is None or len(op.results()) > 1:
        return ()
    loops = kernel_loops(nest, [tensor.shape for tensor in operands], op.output().shape)
    kept = [position for position, tensor in enumerate(operands) if tensor.name not in in_memory]
    return tuple(replace(loop, inputs=tuple(loop.inputs[position] for position in kept)) for loop in loops)
