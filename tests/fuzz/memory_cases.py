"""Small models on drawn machines: what a mapping says of memory and cycles, played element by element."""

import traceback
from pathlib import Path

import onnx

import dfcompile as df
from dfcompile.errors import UserError
from tests.fuzz.command_line import without_names
from tests.fuzz.draw import Draw
from tests.fuzz.drawn_machines import drawn_machine
from tests.fuzz.kind import Case, ShowPhase
from tests.fuzz.outcome import Outcome, Verdict
from tests.whole.memory_player import player_of

_PIECES = ("declared", "pieces=1", "pieces=2", "pieces=4", "pieces=7", "pieces=16", "max-tasks=2", "split=4")


def judge_memory(path: Path, case: Case, draw: Draw, show: ShowPhase) -> Outcome:
    """Return what came of a model: whether memory and times are those that the report says."""
    machine, options = drawn_machine(draw), dict[str, object]()
    if draw.chance(0.7):  # choosing, which is the default, takes longer, and seldom chooses what is strange
        options = {"expand": _drawn_rules(path, draw) or "published", "granularity": draw.choice(_PIECES)}
    options["partition"] = draw.choice(["best", "best", "best", "sb-rlx", "sb-lts"])
    if draw.chance(0.2):
        options["max_fifo"] = draw.choice([1, 4])
    show("mapping")
    try:
        run = df.compile(path, pes=[machine.pes], system=machine.file(), **options)
    except UserError as error:
        return Outcome(Verdict.REFUSED, without_names(str(error)), str(error))
    (point,), (result,) = run.exploration.points, run.report.results
    said, player = result.mapping, player_of(point)
    assert said is not None
    show("playing")
    try:
        player.play()
        assert said.dram_bytes == player.read_bytes + player.written_bytes
        assert said.sram_bytes >= player.most_held
        assert said.time_s == point.attained.time_s
    except AssertionError as error:
        (*_, frame) = traceback.extract_tb(error.__traceback__)
        where = f"{machine} {options}"
        return Outcome(Verdict.MISCOUNTED, f"memory: {frame.name}: {frame.line}", f"{error}\n{where}")
    return Outcome(Verdict.ACCEPTED)


def _drawn_rules(path: Path, draw: Draw) -> list[str]:
    """Return an expansion for each type of the model."""
    types = {node.op_type for node in onnx.load(path).graph.node}
    conv = draw.choice(["im2col", "direct"])
    rules = {
        f"Conv={conv}": "Conv" in types,
        f"Convolution={draw.choice(['filters', 'windows'])}": "Conv" in types and conv == "direct",
        f"MatMul={draw.choice(['mv', 'op', 'lmv', 'ip', 'columns', 'rows'])}": "MatMul" in types
        or ("Conv" in types and conv == "im2col"),
    }
    return [rule for rule, is_of_model in rules.items() if is_of_model]
