"""Judges a model: dfcompile's maps, interpreted, against onnxruntime."""

from collections.abc import Mapping
from math import prod
from pathlib import Path

import numpy as np
import onnx
from dace.sdfg.nodes import MapEntry
from google.protobuf.message import DecodeError

from dfcompile.errors import UserError
from dfcompile.frontend import Program, ReadOptions, read_model
from dfcompile.frontend.onnx_model import program_of
from dfcompile.lowering import lower_to_canonical, lower_to_maps, registered_expansions
from dfcompile.options.readers import fixed_inputs
from tests.fuzz.command_line import bug, run_command, without_names
from tests.fuzz.comparison import difference
from tests.fuzz.draw import Array, Draw
from tests.fuzz.kind import Case, ShowPhase
from tests.fuzz.node_by_node import reason_node_by_node
from tests.fuzz.oracle import Answer, Session, load
from tests.fuzz.outcome import Outcome, Verdict
from tests.fuzz.sensitivity import only_rounding
from tests.interpreter import interpret

MOST_ITERATIONS = 4_000_000  # that are interpreted
MOST_ELEMENTS = 4_000_000  # of inputs, which a mutation can make terabytes
ORACLE_PHASE = "onnxruntime"
_TABLE = registered_expansions()


def judge_model(path: Path, case: Case, draw: Draw, show: ShowPhase) -> Outcome:
    """Return what came of a model file."""
    show("dfcompile")
    try:
        program: Program | UserError = _lowered(path, case)
    except UserError as error:
        program = error
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a finding
        return bug(error)
    refused = isinstance(program, UserError)
    if draw.chance(0.2 if refused else 0.08):
        printed = _through_all_stages(path, case, draw, refused=refused)
        if printed.verdict.is_finding:
            return printed
    show(ORACLE_PHASE)
    answer = load(case.content)
    if isinstance(program, UserError):
        return _of_refusal(program, answer, case)
    if sum(prod(port.shape) for port in program.inputs) > MOST_ELEMENTS:
        return Outcome(Verdict.NOT_COMPARED, "too large to be interpreted")
    feeds = {port.name: _feed(case.feeds.get(port.name), port.dtype, port.shape, draw) for port in program.inputs}
    if isinstance(answer, Session):
        answer = answer.run({**{name: case.feeds[name] for name in answer.inputs if name in case.feeds}, **feeds})
    if answer.refusal:
        if _says_not_implemented(answer.refusal):
            return Outcome(Verdict.NOT_COMPARED, "onnxruntime has no kernel for it", answer.refusal)
        cause = f"{_operators(case)}: {without_names(answer.refusal)}"
        return Outcome(Verdict.ACCEPTED_ALONE, cause, answer.refusal)
    show("interpreter")
    invalid = _invalid(program, case) if draw.chance(0.25) else None
    return invalid or _compared(program, feeds, answer, case)


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _invalid(program: Program, case: Case) -> Outcome | None:
    """Return what DaCe has against the program: the part of a compilation that takes milliseconds."""
    try:
        program.sdfg.validate()
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a finding
        return Outcome(Verdict.BUG, f"{type(error).__name__}: {_operators(case)}", str(error))
    return None


def _lowered(path: Path, case: Case) -> Program:
    reading = ReadOptions(fixed_inputs=fixed_inputs("--input", {name: case.feeds[name] for name in case.fixed}))
    return lower_to_maps(lower_to_canonical(read_model(path, reading).program, _TABLE, ()), _TABLE, ())


def _lowered_model(model: onnx.ModelProto) -> Program:
    return lower_to_maps(lower_to_canonical(program_of("model", model, ReadOptions()), _TABLE, ()), _TABLE, ())


def _through_all_stages(path: Path, case: Case, draw: Draw, *, refused: bool) -> Outcome:
    partition = draw.choice(["sb-rlx", "sb-lts", "best", "work-ordered"])
    # Choosing, which is the default, takes several times as long.
    chosen = [] if draw.chance(0.2) else ["--expand", "published"]
    told = [f"--input={name}={','.join(map(_word, case.feeds[name].ravel().tolist()))}" for name in case.fixed]
    # The command line has no shape beside a value: where that is needed, it refuses what the stages take.
    if refused and any(case.feeds[name].size == 0 for name in case.fixed):
        return Outcome(Verdict.REFUSED)
    pes = draw.choice(["1", "4", "4,64"])
    found = run_command([str(path), "--pes", pes, "--partition", partition, *chosen, *told])
    if refused and found.verdict is Verdict.ACCEPTED:
        return Outcome(Verdict.BUG, "refused by the stages but not by the command line")
    return found


def _of_refusal(refusal: UserError, answer: Session | Answer, case: Case) -> Outcome:
    cause = without_names(str(refusal).partition(" (")[0])
    if isinstance(answer, Answer):
        return Outcome(Verdict.BOTH_REFUSE, cause, str(refusal))
    feeds = {name: case.feeds[name] for name in answer.inputs if name in case.feeds}
    if answer.run(feeds).refusal:
        return Outcome(Verdict.BOTH_REFUSE, cause, str(refusal))
    return Outcome(Verdict.REFUSED_ALONE, cause, f"{_operators(case)}: {refusal}")


def _compared(program: Program, feeds: Mapping[str, Array], answer: Answer, case: Case) -> Outcome:
    model = onnx.load_model_from_string(case.plain or case.content)
    entries = [node.map.range.ranges for state in program.sdfg.states() for node in state.nodes()
               if isinstance(node, MapEntry)]  # fmt: skip
    if sum(prod(int(last) + 1 for _, last, _ in ranges) for ranges in entries) > MOST_ITERATIONS:
        return Outcome(Verdict.NOT_COMPARED, "too large to be interpreted")
    try:
        found = interpret(program, feeds)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is a finding
        return bug(error)
    results = {name: value for name, value in answer.results.items() if value.size}
    if len(program.outputs) != len(results):  # onnxruntime's may have no elements where they should have some
        names = [port.name for port in program.outputs]
        results = {name: answer.results[name] for name in names if name in answer.results}
    if len(program.outputs) != len(results):
        return Outcome(Verdict.DIFFERENT, f"{len(program.outputs)} outputs against {len(results)}")
    # By position: an output that is an input as well has another name in a program.
    found = dict(zip(results, (found[port.name] for port in program.outputs), strict=True))
    every = {name: value for name, value in {**case.feeds, **feeds}.items() if name not in case.fixed}
    sizes = [value.size for value in feeds.values()] + [prod(entry.dims) for entry in model.graph.initializer]
    longest = max([1, *sizes])
    text = difference(found, results, model, longest)
    if not text:
        return Outcome(Verdict.SAME)
    if only_rounding(model, every, found, results, longest):
        return Outcome(Verdict.NOT_COMPARED, "rounding in the original changes as much", text)
    reason = reason_node_by_node(model, every, found, _lowered_model, longest)
    if reason:
        return Outcome(Verdict.KNOWN_DIFFERENCE, reason, text)
    dtypes = sorted({str(value.dtype) for value in (*feeds.values(), *results.values())})
    return Outcome(Verdict.DIFFERENT, f"{_operators(case)} of {', '.join(dtypes)}", text)


def _feed(given: Array | None, dtype: str, shape: tuple[int, ...], draw: Draw) -> Array:
    if given is not None and (given.dtype, given.shape) == (np.dtype(dtype), shape):
        return given
    return draw.array(dtype, shape)


def _operators(case: Case) -> str:
    try:
        model = onnx.load_model_from_string(case.plain or case.content)
    except DecodeError:
        return "no model"
    opset = next((entry.version for entry in model.opset_import), 0)
    return " ".join(_as_of(node.op_type, opset) for node in model.graph.node)[:120]


def _as_of(op_type: str, opset: int) -> str:
    try:
        return f"{op_type}-{onnx.defs.get_schema(op_type, opset, '').since_version}"
    except onnx.defs.SchemaError:
        return op_type


def _says_not_implemented(refusal: str) -> bool:
    return "NOT_IMPLEMENTED" in refusal or "not supported" in refusal.lower() or "not implemented" in refusal.lower()
