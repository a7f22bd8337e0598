"""From an ONNX model in memory to a program: the list of the frontend's steps."""

from collections.abc import Mapping

import onnx

from dfcompile.frontend.normaliser import normalise
from dfcompile.frontend.normaliser.control_flow import without_control_flow
from dfcompile.frontend.normaliser.later_types import with_later_types
from dfcompile.frontend.normaliser.opset import upgraded, with_operator_set
from dfcompile.frontend.onnx.draft import Constant, Draft
from dfcompile.frontend.onnx.draft_reading import NO_WEIGHTS, read_draft
from dfcompile.frontend.onnx.origins import name_nodes
from dfcompile.frontend.options import ReadOptions
from dfcompile.frontend.program import KnownInput, Program
from dfcompile.frontend.sdfg.importer import import_program
from dfcompile.frontend.validation import check_operands, check_structure, checked_types
from dfcompile.host.stages import Work, work_of
from dfcompile.records import replace


def program_of(
    name: str, model: onnx.ModelProto, options: ReadOptions, weights: Mapping[str, Constant] = NO_WEIGHTS
) -> Program:
    """Return the program of level 0 of an ONNX model.

    Args:
        name: of the program, as far as it is an identifier.
        model: with its external data loaded; not changed.
        options: sizes and values of the inputs.
        weights: initializers that stand beside the model.

    Raises:
        UserError: the model contradicts itself, or has something that cannot be compiled.
    """
    with work_of(4) as steps:
        return _program_of(name, model, options, weights, steps)


def _program_of(
    name: str, model: onnx.ModelProto, options: ReadOptions, weights: Mapping[str, Constant], steps: Work
) -> Program:
    model = with_operator_set(model)
    read = read_draft(model, options, weights)
    draft = upgraded(without_control_flow(read))
    steps.add()
    named = name_nodes(draft)
    check_structure(named, options.operators)
    named = with_later_types(named)
    # Before the passes as well: they would report a contradiction as their own.
    check_operands(named, model.graph.value_info)
    steps.add()
    normalised = normalise(named)
    steps.add()
    program = import_program(name, normalised, checked_types(normalised.draft))
    return replace(program, known_inputs=_known_inputs(model, read, weights))


def _known_inputs(model: onnx.ModelProto, read: Draft, weights: Mapping[str, Constant]) -> tuple[KnownInput, ...]:
    graph = model.graph
    constants = {*weights, *(tensor.name for tensor in graph.initializer)}
    constants.update(sparse.values.name for sparse in graph.sparse_initializer)
    names = [value.name for value in graph.input if value.name not in constants]
    still_open = set(read.input_names)
    return tuple(KnownInput(at, name, read.constants[name]) for at, name in enumerate(names) if name not in still_open)
