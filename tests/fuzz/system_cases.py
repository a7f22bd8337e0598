"""System files, mutated; judged by a run of a small model on them."""

from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dfcompile.dfmodel_backend import named_systems
from dfcompile.dfmodel_backend.machine import systems
from tests.fuzz.command_line import run_command
from tests.fuzz.draw import Draw
from tests.fuzz.kind import Case, ShowPhase
from tests.fuzz.outcome import Outcome
from tests.fuzz.text_mutations import mutated_text

_LOWERINGS = (("--expand", "published"), ())  # choosing, which is the default, takes longer


def mutated_system(draw: Draw) -> Case:
    return Case(".yaml", mutated_text(_text(draw.choice(sorted(named_systems().by_name))), draw))


def judge_system(path: Path, case: Case, draw: Draw, show: ShowPhase) -> Outcome:
    show("dfcompile")
    model = Path("small.onnx")
    model.write_bytes(small_model())
    words = [str(model), "--pes", draw.choice(["4", "1,16"]), "--system", str(path), *_LOWERINGS[draw.chance(0.2)]]
    if draw.chance(0.3):
        words += ["--chips", draw.choice(["1,2", "4"])]
    return run_command([*words, "--format", draw.choice(["table", "json"])])


@cache
def _text(name: str) -> str:
    return resources.files(systems).joinpath(f"{name}.yaml").read_text(encoding="utf-8")


@cache
def small_model() -> bytes:
    """Return a product and a Relu as an .onnx file."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["t"], name="a"), helper.make_node("Relu", ["t"], ["y"], name="b")],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 5])],
        [numpy_helper.from_array(np.ones((6, 5), np.float32), "w")],
    )
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return bytes(model.SerializeToString())
