"""PyTorch models in memory take what model files take: their inputs, nested or by name, sizes that vary, programs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

import dfcompile as df
from dfcompile.api.runs import ModelRun
from dfcompile.frontend import ReadOptions, read_model
from dfcompile.frontend.reading import reading

X = torch.arange(24.0).reshape(4, 6) / 24
MASK, SCALE = torch.ones(4, 8), {"scale": torch.tensor(2.0)}
ARGUMENTS = {
    "a tensor": (X, ["pair"]),
    "a tuple": ((X, MASK), ["pair", "mask"]),
    "a list": ([X, MASK], ["pair", "mask"]),
    "nested tuples": (((X, X + 1), MASK, SCALE), ["pair_0", "pair_1", "mask", "options_scale"]),
    "no tensors among them": (([X, X + 1], None, None, 3), ["pair_0", "pair_1"]),
    "by name, in another order": (
        {"options": SCALE, "mask": MASK, "pair": (X, X + 1)},
        ["pair_0", "pair_1", "mask", "options_scale"],
    ),
}


class Pair(nn.Module):
    """Takes a tensor or two, and returns a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(6, 8)
        self.b = nn.Linear(6, 8)

    def forward(
        self,
        pair: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
        mask: torch.Tensor | None = None,
        options: dict[str, torch.Tensor] | None = None,
        times: int = 1,
    ) -> dict[str, torch.Tensor | None]:
        left, right = (pair, pair) if isinstance(pair, torch.Tensor) else pair
        out = self.a(left) * self.b(right) * times
        if mask is not None:
            out = out * mask
        if options is not None:
            out = out * options["scale"]
        return {"sum": out.sum(-1), "all": out, "none": None}


def line() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 4), nn.ReLU()).eval()


def exported(dynamic_shapes: tuple[dict[int, object]] | None = None) -> torch.export.ExportedProgram:
    return torch.export.export(line(), (torch.ones(2, 8),), dynamic_shapes=dynamic_shapes)


def without_seconds(run: ModelRun) -> object:
    record = json.loads(run.report_json)
    for result in record["results"]:
        result["mapping"]["perfect_streams"].pop("solver_s", None)
    return record


@pytest.mark.parametrize(("inputs", "names"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_inputs_of_a_module_are_as_nested_as_it_takes_them(inputs: object, names: list[str]) -> None:
    with reading(Pair(), inputs) as read:
        program = read(Path("pair"), ReadOptions()).program

    assert [port.name for port in program.inputs] == names
    assert [port.shape for port in program.outputs] == [(4,), (4, 8)]


def test_a_module_with_inputs_by_name_is_verified_against_pytorch() -> None:
    run = df.compile(Pair(), example_inputs=ARGUMENTS["by name, in another order"][0], pes=4, verify=True, name="pair")

    verified = run.report.results[0].verification
    assert verified is not None
    assert verified.max_abs_error < 1e-5


def test_sizes_that_vary_are_those_of_the_example_or_of_dims() -> None:
    shapes = ({0: torch.export.Dim("batch")},)
    for sizes, batch in (({}, 3), ({"batch": 8}, 8)):
        with reading(line(), torch.zeros(3, 8), shapes) as read:
            (port,) = read(Path("line"), ReadOptions(dims=sizes)).program.inputs
        assert port.shape == (batch, 8)
    run = df.compile(line(), example_inputs=torch.zeros(3, 8), dynamic_shapes=shapes, dims={"batch": 5}, pes=4)
    assert [one.shape for one in run.exploration.model.program.inputs] == [(5, 8)]


def test_an_exported_program_is_the_one_in_its_file(tmp_path: Path) -> None:
    program = exported()
    torch.export.save(program, tmp_path / "line.pt2")
    run, of_file = (df.compile(model, pes=4, verify=True, name="line") for model in (program, tmp_path / "line.pt2"))

    assert without_seconds(run) == without_seconds(of_file)
    assert run.report.results[0].verification is not None


def test_an_exported_program_takes_other_inputs_of_sizes_that_it_was_exported_for() -> None:
    other = torch.full((2, 8), 3.0)
    with reading(exported(), (other,)) as read:
        model = read(Path("line"), ReadOptions())
    assert [array.tolist() for array in model.examples] == [other.tolist()]

    varying = exported(({0: torch.export.Dim("batch")},))
    with reading(varying, torch.ones(5, 8)) as read:
        assert [port.shape for port in read(Path("line"), ReadOptions()).program.inputs] == [(5, 8)]


def test_a_file_may_say_which_inputs_an_exported_program_has(tmp_path: Path) -> None:
    torch.export.save(exported(({0: torch.export.Dim("batch")},)), tmp_path / "line.pt2")
    file = tmp_path / "line.py"
    file.write_text(
        "import torch\nfrom pathlib import Path\n"
        "model = torch.export.load(Path(__file__).with_suffix('.pt2'))\nexample_inputs = torch.ones(5, 8)\n"
    )

    assert [port.shape for port in read_model(file).program.inputs] == [(5, 8)]


def refusals() -> Iterator[tuple[str, object, dict[str, object], str]]:
    """Yield what is given, and the whole error, from its beginning on."""
    program, bare = exported(), exported()
    bare.example_inputs = None
    x = torch.ones(2, 8)
    scripted: object = vars(torch.jit)["trace"](line(), x)  # which has no types
    needs = "m: example_inputs: "
    yield "other sizes", program, {"example_inputs": torch.ones(3, 8)}, f"{needs}AssertionError: Guard failed: "
    yield "another number", program, {"example_inputs": (x, x)}, f"{needs}ValueError: "
    yield "no inputs", bare, {}, "m: an exported program without its example inputs (give example_inputs)"
    yield "varying program", program, {"dynamic_shapes": ({},)}, "dynamic_shapes: given beside another model against"
    yield "a set", Pair(), {"example_inputs": (X, {4})}, f"{needs}found a value of type set at position 1 against"
    yield "no tensor", Pair(), {"example_inputs": ()}, f"{needs}found no tensor (give a tensor, a tuple of"
    yield "a name", Pair(), {"example_inputs": {"x": X}}, f"{needs}got an unexpected keyword argument 'x' (the module"
    yield "scripted", scripted, {"example_inputs": x}, "m: model: found a TorchScript module against an nn.Module (give"


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")
def test_what_cannot_be_read_is_refused_in_one_line() -> None:
    for case, model, given, message in refusals():
        with pytest.raises(df.UserError) as caught:
            df.compile(model, pes=4, name="m", **given)
        assert str(caught.value).startswith(message), case
        assert "\n" not in str(caught.value), case
