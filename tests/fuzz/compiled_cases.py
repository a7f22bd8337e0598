"""Generated nodes side by side in one model, compiled: C++ gives what the interpreter gives."""

from pathlib import Path

import onnx

from dfcompile.errors import UserError
from dfcompile.frontend import ReadOptions, read_model
from dfcompile.frontend.onnx_model import program_of
from dfcompile.lowering import lower_to_canonical, lower_to_maps
from dfcompile.lowering.execution.compiled_run import run_program
from tests.fuzz.command_line import bug
from tests.fuzz.comparison import difference
from tests.fuzz.draw import Draw
from tests.fuzz.generated_models import NEWEST, OLDEST, ModelCase, generated_model
from tests.fuzz.kind import Case, ShowPhase
from tests.fuzz.outcome import Outcome, Verdict
from tests.interpreter import interpret
from tests.onnx_node_cases import NodeCase, merged
from tests.onnx_nodes import TABLE

NODES = 20  # of a model, which then compiles in a few seconds


def compiled_nodes(draw: Draw) -> Case:
    opset = draw.integer(OLDEST, NEWEST)
    cases: list[ModelCase] = []
    while len(cases) < NODES:
        case = generated_model(draw, opset=opset)
        if case.feeds and _is_accepted(case.model):
            cases.append(case)
    model, feeds, _ = merged([NodeCase(str(number), case.model, case.feeds, {}) for number, case in enumerate(cases)])
    model.opset_import[0].version = opset
    return Case(".onnx", model.SerializeToString(), feeds)


def _is_accepted(model: onnx.ModelProto) -> bool:
    try:
        lower_to_maps(lower_to_canonical(program_of("node", model, ReadOptions()), TABLE, ()), TABLE, ())
    except UserError:
        return False
    return True


def judge_compiled(path: Path, case: Case, draw: Draw, show: ShowPhase) -> Outcome:
    show("dfcompile")
    try:
        program = lower_to_maps(lower_to_canonical(read_model(path).program, TABLE, ()), TABLE, ())
        expected = interpret(program, case.feeds)
        show("compiler")
        found = run_program(program, case.feeds, optimised=False)
    except UserError as error:
        return Outcome(Verdict.BUG, "refused together but not alone", str(error))
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a finding
        return bug(error)
    model = onnx.load_model_from_string(case.content)
    text = difference(found, expected, model)
    if not text:
        return Outcome(Verdict.SAME)
    output = text.partition("'")[2].partition("'")[0]
    op_type = next((node.op_type for node in model.graph.node if output in node.output), "")
    return Outcome(Verdict.DIFFERENT, f"compiled {op_type} against interpreted", f"{text} (of {op_type})")
