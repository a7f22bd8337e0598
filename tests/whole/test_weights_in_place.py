"""Weights are neither read nor copied, nor made, on the way to a report."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from dfcompile.errors import UserError
from dfcompile.frontend import Model, ReadOptions, read_model, reference_answer
from dfcompile.frontend.onnx_model import program_of
from dfcompile.frontend.torch import unread_weights
from dfcompile.frontend.torch.torch_model import TorchModel, export_onnx, torch_model
from dfcompile.lowering.program_nodes import operator_nodes
from tests.locations import ROOT

UNREAD = ReadOptions(reads_weights=False)

# Runs a small model, then a large one, in a process of its own: what MB the second takes beyond the first, and how many
# kB of each mapped file of data it has looked at.
MEASURE = """
import re, resource, sys
from pathlib import Path
import dfcompile
def peak(name):
    run = dfcompile.compile(Path(name), pes=16)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, run
small, _ = peak(sys.argv[1])
large, run = peak(sys.argv[2])
held = Path("/proc/self/smaps").read_text().split("large.bin\\n")[1:]
print((large - small) // 1024, *(re.search(r"Rss: +(\\d+)", each)[1] for each in held))
"""


def measured(folder: Path, *names: str) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *names],
        cwd=folder, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return [int(word) for word in done.stdout.split()]


def write_layers(folder: Path, name: str, rows: int, columns: int) -> None:
    """Write ``y = (x @ A.T) @ B`` of two matrices in a sparse file, of which no byte takes room on the disk."""
    tensors = []
    for at, weight in enumerate("AB"):
        size = 4 * rows * columns
        tensor = TensorProto(name=weight, data_type=TensorProto.FLOAT, dims=[rows, columns])
        tensor.data_location = TensorProto.EXTERNAL
        for key, text in {"location": f"{name}.bin", "offset": at * size, "length": size}.items():
            tensor.external_data.add(key=key, value=str(text))
        tensors.append(tensor)
    nodes = [
        helper.make_node("Transpose", ["A"], ["At"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "At"], ["t"]),
        helper.make_node("MatMul", ["t", "B"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info(port, TensorProto.FLOAT, [2, columns]) for port in "xy"]
    graph = helper.make_graph(nodes, "layers", ports[:1], ports[1:], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), folder / f"{name}.onnx")
    with (folder / f"{name}.bin").open("wb") as file:
        file.truncate(2 * 4 * rows * columns)


def test_a_gigabyte_of_external_data_is_mapped_and_not_read(tmp_path: Path) -> None:
    write_layers(tmp_path, "small", 2**6, 2**7)
    write_layers(tmp_path, "large", 2**13, 2**14)
    assert (tmp_path / "large.bin").stat().st_size == 2**30

    more_mb, *looked_at_kb = measured(tmp_path, "small.onnx", "large.onnx")

    assert more_mb < 100
    assert looked_at_kb == [0]


def write_module(path: Path, text: str) -> Path:
    path.write_text(f"import torch\nfrom torch import nn\n{text}\n")
    return path


def test_a_gigabyte_of_a_module_is_not_made(tmp_path: Path) -> None:
    text = (
        "model = lambda: nn.Sequential(nn.Linear({1}, {0}), nn.Linear({0}, {1}))\nexample_inputs = torch.ones(2, {1})"
    )
    write_module(tmp_path / "small.py", text.format(2**6, 2**7))
    write_module(tmp_path / "large.py", text.format(2**13, 2**14))

    (more_mb,) = measured(tmp_path, "small.py", "large.py")

    assert more_mb < 100


def described(model: Model) -> object:
    """Return what a model was read as, but for values of weights."""
    program = model.program
    arrays = [(name, array.shape, array.dtype.type, array.transient) for name, array in program.sdfg.arrays.items()]
    operators = [(node.name, node.op_type, node.attributes) for node in operator_nodes(program)]
    parameters = [(name, value.shape, value.dtype) for name, value in program.parameters.items()]
    return program.nodes, program.inputs, program.outputs, arrays, operators, parameters


MODULES = {  # and the shape of its input
    "joined normalisation": ("nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())", "1, 3, 8, 8"),
    "recurrent": ("nn.LSTM(4, 6, 2, bidirectional=True)", "5, 1, 4"),
    "attention": ("nn.TransformerEncoderLayer(8, 2, 16)", "3, 1, 8"),
    "another type": ("nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 4)).to(torch.float64).to(torch.float32)", "2, 8"),
    "bfloat16": ("nn.Sequential(nn.Embedding(9, 8, padding_idx=0), nn.Linear(8, 4)).to(torch.bfloat16)", "2"),
    "shared": ("tied(nn.Linear(8, 8), nn.Linear(8, 8))", "2, 8"),
    "computed weights": ("Normalised(8, 4)", "2, 8"),
}
DEFINED = """
class Normalised(nn.Linear):
    def forward(self, x):
        return x @ (self.weight / self.weight.norm(dim=1, keepdim=True)).T
def tied(first, second):
    second.weight = first.weight
    return nn.Sequential(first, nn.Tanh(), second)
"""


@pytest.mark.parametrize(("module", "shape"), MODULES.values(), ids=MODULES)
def test_a_model_is_the_same_with_and_without_values(
    module: str, shape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread_weights, "SMALLEST", 16)
    dtype = ", dtype=torch.int64" if "Embedding" in module else ""
    text = f"{DEFINED}\ndef model(): return {module}\nexample_inputs = torch.ones({shape}{dtype})"
    path = write_module(tmp_path / "model.py", text)

    model = read_model(path, UNREAD)

    assert isinstance(model.reference, TorchModel)
    assert unread_weights.is_unread(model.reference.module)
    assert described(model) == described(read_model(path))


@pytest.mark.parametrize(
    "scale", ["self.a.abs().max()", "torch.tensor(self.a.max().item())", "torch.zeros(()).copy_(self.a.min())"]
)
def test_values_that_others_depend_on_are_made(scale: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed of a weight when the module is made is a constant of the model, and no weight."""
    monkeypatch.setattr(unread_weights, "SMALLEST", 16)
    text = (
        "class Scaled(nn.Module):\n"
        " def __init__(self):\n  super().__init__()\n  self.a = nn.Parameter(torch.randn(8, 8))\n"
        f"  self.register_buffer('scale', ({scale}).detach())\n"
        " def forward(self, x): return x @ self.a * self.scale\n"
        "model = Scaled\nexample_inputs = torch.ones(2, 8)"
    )
    path = write_module(tmp_path / "model.py", text)

    unread, read = (read_model(path, options).program.parameters for options in (UNREAD, ReadOptions()))

    assert unread.keys() == read.keys()
    for name, value in unread.items():
        np.testing.assert_array_equal(value, read[name])


def test_a_module_on_the_meta_device_is_read_and_cannot_be_run(tmp_path: Path) -> None:
    text = "model = lambda: nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4)){}\nexample_inputs = torch.ones(2, 8)"
    path = write_module(tmp_path / "model.py", text.format(".to('meta')"))

    model = read_model(path)

    assert described(model) == described(read_model(write_module(path, text.format(""))))
    with pytest.raises(UserError, match=r"model\.py: weights without values against those that a run needs"):
        reference_answer(model, model.example_feeds(seed=0))


def test_parameters_are_views_of_the_module() -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))

    proto, weights = export_onnx(torch_model(Path("model.py"), module, torch.zeros(1, 3)))
    program = program_of("model", proto, ReadOptions(), weights)

    held = [parameter.detach().numpy() for parameter in module.parameters()]
    assert not proto.graph.initializer
    assert len(program.parameters) == len(held)
    for value in program.parameters.values():
        assert not value.flags.writeable
        assert any(np.shares_memory(value, array) for array in held)
