"""From an ONNX model in memory to a program: the list of the frontend's steps."""

import onnx

from dfcompile.frontend.model import ReadOptions
from dfcompile.frontend.normaliser import normalise
from dfcompile.frontend.normaliser.control_flow import without_control_flow
from dfcompile.frontend.normaliser.opset import upgraded, with_later_types, with_operator_set
from dfcompile.frontend.onnx.draft import Constants
from dfcompile.frontend.onnx.draft_reading import NO_WEIGHTS, input_names, read_draft
from dfcompile.frontend.onnx.origins import name_nodes
from dfcompile.frontend.program import KnownInput, Program
from dfcompile.frontend.sdfg.importer import import_program
from dfcompile.frontend.validation import check_operands, check_structure, checked_types
from dfcompile.host.stages import work_of
from dfcompile.records import replace


def program_of(name: str, model: onnx.ModelProto, options: ReadOptions, weights: Constants = NO_WEIGHTS) -> Program:
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
        still_open = set(read.input_names)
        positions = [(at, value) for at, value in enumerate(input_names(model, weights)) if value not in still_open]
        known = tuple(KnownInput(at, name, read.constants[name]) for at, name in positions)
        return replace(program, known_inputs=known)
