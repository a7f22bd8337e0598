"""PyTorch files: the protocol of a model file, and models of several families.

One export takes two to three seconds, hence few of them.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dfcompile.errors import UserError
from dfcompile.frontend import Coverage, ReadOptions, read_model, reference_answer
from dfcompile.lowering import lower_to_canonical, lower_to_nests, registered_expansions
from dfcompile.lowering.execution.verification import verified_deviation
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, assert_same, checked_maps

LENET = Path("examples/lenet/model.py")


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "user_model.py"
    path.write_text(text)
    return path


def test_lenet_has_thirteen_nodes_with_the_users_names() -> None:
    model = read_model(LENET)

    assert [node.name for node in model.program.nodes] == [
        *["conv1", "relu", "maxpool", "conv2", "relu_1", "maxpool_1", "reshape"],
        *["fc1", "relu_2", "fc2", "relu_3", "fc3", "softmax"],
    ]
    assert [node.name for node in model.program.nodes if node.coverage is not Coverage.COSTED] == ["reshape"]
    assert [(port.shape, port.dtype) for port in model.program.outputs] == [((1, 10), "float32")]
    (probabilities,) = reference_answer(model, model.example_feeds(seed=0)).outputs
    assert probabilities.sum() == pytest.approx(1, abs=1e-6)


def test_first_convolution_is_one_node_of_the_same_weights_each_time() -> None:
    first, again = (read_model(Path("examples/lenet/conv1.py")) for _ in range(2))

    assert [(node.name, node.op_type) for node in first.program.nodes] == [("conv1", "Conv")]
    assert {name: value.shape for name, value in first.program.parameters.items()} == {
        "conv1_weight": (6, 1, 5, 5),
        "conv1_bias": (6,),
    }
    for name, value in first.program.parameters.items():
        np.testing.assert_array_equal(again.program.parameters[name], value)
    np.testing.assert_array_equal(again.examples[0], first.examples[0])


FAMILIES = """
import math
import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.short = nn.Conv2d(4, 4, 1)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)) + self.short(x))


class Causal(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        scores = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        mask = torch.tril(torch.ones(length, length, dtype=torch.bool))
        mixed = torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1) @ value
        return self.project(mixed.transpose(1, 2).reshape(batch, length, width))


class All(nn.Module):
    def __init__(self):
        super().__init__()
        self.residual = Residual()
        self.encoder = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.embedding = nn.Embedding(10, 16)
        self.causal = Causal(16, 2)
        self.norm = nn.LayerNorm(16)
        self.gelu = nn.GELU(approximate="tanh")
        self.dropout = nn.Dropout(0.5)

    def forward(self, image, tokens):
        words = self.embedding(tokens)
        words = words + self.causal(self.norm(words))
        return self.residual(image), self.dropout(self.gelu(self.encoder(words)))


def model():
    return All()


def example_inputs():
    return torch.randn(1, 4, 5, 7), torch.randint(0, 10, (2, 6))
"""


def test_residual_encoder_and_causal_blocks_are_read(tmp_path: Path) -> None:
    model = read_model(write(tmp_path, FAMILIES))

    program = model.program
    names = {node.name: node.op_type for node in program.nodes}
    counts = Counter(node.op_type for node in program.nodes)

    assert [(port.shape, port.dtype) for port in program.inputs] == [((1, 4, 5, 7), "float32"), ((2, 6), "int64")]
    assert [port.shape for port in program.outputs] == [(1, 4, 5, 7), (2, 6, 16)]
    # The batch normalisation is folded into the convolution, whose name stays.
    assert (names["residual.conv"], names["residual.short"]) == ("Conv", "Conv")
    assert names["encoder.norm1"] == names["encoder.norm2"] == names["norm"] == "LayerNormalization"
    assert counts["Softmax"] == 2
    assert all(int(size) > 0 for array in program.sdfg.arrays.values() for size in array.shape)
    program.sdfg.validate()
    found = reference_answer(model, model.example_feeds(seed=0)).outputs
    assert [value.shape for value in found] == [(1, 4, 5, 7), (2, 6, 16)]


NARROW = """
import torch
from torch import nn


class Narrow(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.linear = nn.Linear(36, 5)

    def forward(self, x):
        return torch.softmax(self.linear(torch.relu(self.norm(self.conv(x))).flatten(1)), -1)


def model():
    return Narrow().to(torch.bfloat16)


example_inputs = torch.randn(2, 2, 5, 5, dtype=torch.bfloat16)
"""


def test_bfloat16_is_read_and_computed_as_pytorch_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dfcompile.lowering.execution.verification.run_program", interpret)
    model = read_model(write(tmp_path, NARROW))
    maps = checked_maps(lower_to_nests(lower_to_canonical(model.program, TABLE), TABLE))

    assert {port.dtype for port in (*model.program.inputs, *model.program.outputs)} == {"bfloat16"}
    # The exporter leaves those in single precision that it joins with the normalisation.
    assert {value.dtype.name for value in model.program.parameters.values() if value.dtype.kind != "i"} == {"bfloat16"}
    assert verified_deviation(model, maps, seed=0).relative < 2**-5


BRANCH = """import torch
from torch import nn


class Branch(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


model = Branch
example_inputs = torch.ones(2)
"""
WRONG_INPUT = """import torch
from torch import nn
model = nn.Identity()
example_inputs = (torch.ones(1), {4})
"""
SCRIPTED = """import torch
import warnings
from torch import nn
with warnings.catch_warnings(action="ignore"):
    model = torch.jit.trace(nn.Linear(8, 4), torch.zeros(2, 8))
example_inputs = torch.zeros(2, 8)
"""
UNKNOWN_ARGUMENT = """import torch
from torch import nn
model = nn.Linear(8, 4)
example_inputs = {"x": torch.zeros(2, 8)}
"""
PROTOCOL = "(a model file defines model() and example_inputs())"
FAULTS = {
    "import torch\n\n\ndef model():\n    return 1 / 0\n": ":5: ZeroDivisionError: division by zero",
    "raise ValueError('two\\nlines')\n": ":1: ValueError: two",
    "def model():\n    assert False\n": ":2: AssertionError",
    "import sys\nsys.exit(3)\n": ":2: SystemExit: 3",
    "def model(: pass\n": ":1: SyntaxError: invalid syntax (user_model.py, line 1)",
    "import no_such_module\n": ":1: ModuleNotFoundError: No module named 'no_such_module'",
    "modle = 1\n": f": no 'model' is defined (did you mean 'modle'?) {PROTOCOL}",
    "from torch import nn\nmodel = nn.Identity()\n": f": no 'example_inputs' is defined {PROTOCOL}",
    "model = 3\nexample_inputs = 4\n": ": model: found a value of type int against an nn.Module",
    WRONG_INPUT: ": example_inputs: found a value of type set at position 1 against a tensor",
    SCRIPTED: ": model: found a TorchScript module against an nn.Module (give the module that it was made of)",
    UNKNOWN_ARGUMENT: ": example_inputs: got an unexpected keyword argument 'x' (the module takes input)",
    BRANCH: ":7: the model cannot be exported to ONNX: GuardOnDataDependentSymNode: ",
}


@pytest.mark.parametrize(("text", "message"), FAULTS.items(), ids=FAULTS.values())
def test_faulty_file_is_one_line_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)

    with pytest.raises(UserError) as caught:
        read_model(path)

    assert str(caught.value).startswith(f"{path}{message}")
    assert "\n" not in str(caught.value)
    assert text != BRANCH or "torch.where" in str(caught.value)
    assert [found.name for found in tmp_path.iterdir()] == ["user_model.py"]


def test_file_may_import_its_neighbours_and_leaves_no_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "neighbour_layers.py").write_text("from torch import nn\nlayer = nn.Linear(3, 4)\n")
    path = write(
        tmp_path,
        "import neighbour_layers\nimport torch\nprint('hello')\nmodel = neighbour_layers.layer\n"
        "example_inputs = torch.zeros(2, 3)\n",
    )
    search_path = list(sys.path)

    program = read_model(path).program

    assert [node.op_type for node in program.nodes] == ["Gemm"]
    assert sys.path == search_path
    assert not {"neighbour_layers", "model_file_user_model"} & set(sys.modules)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["neighbour_layers.py", "user_model.py"]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "hello\n"


RECURRENT = """
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, num_layers=2, batch_first=True, bidirectional=True, dropout=0.5)
        self.gru = nn.GRU(6, 5)

    def forward(self, x):
        words, (last, _) = self.lstm(x)
        return self.gru(words)[0], last


def model():
    return Tagger()


def example_inputs():
    return (torch.randn(2, 4, 4),)
"""


def test_layers_of_recurrent_operators_are_computed_as_pytorch_does(tmp_path: Path) -> None:
    model = read_model(write(tmp_path, RECURRENT))
    table = registered_expansions()
    lowered = checked_maps(lower_to_nests(lower_to_canonical(model.program, table), table))
    feeds = model.example_feeds(seed=0)

    assert Counter(node.op_type for node in model.program.nodes)["LSTM"] == 2
    results = reference_answer(model, feeds).outputs
    expected = dict(zip((port.name for port in model.program.outputs), results, strict=True))
    named = dict(zip((port.name for port in model.program.inputs), feeds, strict=True))
    assert_same(interpret(lowered, named), expected, 1e-5, 1e-6)


NESTED = """
from dataclasses import dataclass
import torch
from torch import nn


@dataclass
class Output:
    total: torch.Tensor
    parts: dict


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(6, 8)
        self.b = nn.Linear(6, 8)

    def forward(self, pair, mask=None, options=None, is_scaled=False, times=1):
        left, right = pair
        out = self.a(left) * self.b(right) * times
        if mask is not None:
            out = out * mask
        if is_scaled:
            out = out * options["scale"]
        return Output(out.sum(-1), {"all": out, "none": None})


model = Pair
x = torch.randn(4, 6)
example_inputs = """
ARGUMENTS = {
    "by name, in another order": '{"mask": torch.randn(4, 8), "is_scaled": True, "pair": (x, x + 1), '
    '"options": {"scale": torch.tensor(2.0)}}',
    "by position, the last one a dictionary": '((x, x + 1), torch.randn(4, 8), {"scale": torch.tensor(2.0)})',
    "no tensors among them": "([x, x + 1], None, None, False, 3)",
}
NAMES = ["pair_0", "pair_1", "mask", "options_scale"]


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_and_results_may_be_nested(arguments: str, tmp_path: Path) -> None:
    model = read_model(write(tmp_path, NESTED + arguments))
    lowered = checked_maps(lower_to_nests(lower_to_canonical(model.program, TABLE), TABLE))
    feeds = model.example_feeds(seed=0)

    names = [port.name for port in model.program.inputs]
    assert names == NAMES[: len(names)]
    assert [port.shape for port in model.program.outputs] == [(4,), (4, 8)]
    expected = dict(
        zip((port.name for port in model.program.outputs), reference_answer(model, feeds).outputs, strict=True)
    )
    assert_same(interpret(lowered, dict(zip(names, feeds, strict=True))), expected, 1e-5, 1e-6)


DYNAMIC = """
import torch
from torch import nn

batch = torch.export.Dim("batch")
dynamic_shapes = {"x": {0: batch}}


def model():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def example_inputs():
    return torch.zeros(3, 8)
"""


@pytest.mark.parametrize(("dims", "size"), [({}, 3), ({"batch": 5}, 5)])
def test_a_size_that_varies_is_that_of_the_example_or_is_given(dims: dict[str, int], size: int, tmp_path: Path) -> None:
    model = read_model(write(tmp_path, DYNAMIC), ReadOptions(dims=dims))

    assert [port.shape for port in (*model.program.inputs, *model.program.outputs)] == [(size, 8), (size, 4)]
    assert [each.shape for each in reference_answer(model, model.example_feeds(seed=0)).outputs] == [(size, 4)]


SHARED_SIZE = """
import torch
from torch import nn

batch = torch.export.Dim("batch")
dynamic_shapes = {"x": {0: batch}, "mask": {0: batch}}
example_inputs = {"x": torch.zeros(3, 8), "mask": torch.ones(3, 8)}


class Masked(nn.Module):
    def forward(self, x, mask):
        return x * mask


model = Masked
"""


def test_a_size_follows_from_the_shape_of_another_input(tmp_path: Path) -> None:
    model = read_model(write(tmp_path, SHARED_SIZE), ReadOptions(shapes={"x": (5, 8)}))

    assert [port.shape for port in (*model.program.inputs, *model.program.outputs)] == [(5, 8)] * 3


def test_an_exported_program_has_its_inputs(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "import torch\nfrom torch import nn\n"
        "model = torch.export.export(nn.Linear(8, 4), (), {'input': torch.ones(3, 8)})\n"
        f"torch.export.save(model, {str(tmp_path / 'layer.pt2')!r})\n",
    )

    models = [read_model(path), read_model(tmp_path / "layer.pt2")]

    for model in models:
        assert [(port.name, port.shape) for port in model.program.inputs] == [("input", (3, 8))]
        assert [node.op_type for node in model.program.nodes] == ["Gemm"]
    first, again = (reference_answer(model, model.example_feeds(seed=0)).outputs[0] for model in models)
    np.testing.assert_array_equal(first, again)


def test_what_is_no_exported_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "layer.pt2"
    path.write_bytes(b"PK\3\4")

    with pytest.raises(UserError, match=r"layer\.pt2: no program of torch\.export: "):
        read_model(path)
