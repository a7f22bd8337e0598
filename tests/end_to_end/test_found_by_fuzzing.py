"""What fuzzing found, as small files: each ends with a report or with one line, never with exit status 2."""

from importlib import resources
from pathlib import Path

import numpy as np
import onnx
import pytest

from dfcompile.cli import main as cli
from dfcompile.dfmodel_backend.machine import systems
from tests.onnx_files import save_convolution
from tests.onnx_text import model_from_text

Capture = pytest.CaptureFixture[str]


def outcome(capture: Capture, *words: str) -> tuple[int, str]:
    """Run; return the status, and the error, which has one line at most."""
    status = cli.main(list(words))
    printed = capture.readouterr().err
    assert printed.count("\n") == status, printed
    return status, printed


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_model_of_constants_alone_has_a_report(form: str, capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "constant.onnx"
    onnx.save(model_from_text("g () => (float[2] y) <float[2] x = {1, -1}> { y = Relu(x) }"), path)

    assert outcome(capsys, str(path), "--pes", "4", "--format", form) == (0, "")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind: r_r", "kind: W.", "key 'network.kind': topology 'W.': unknown (known: "),
        ("kind: r_r", "kind: r", "found 2 dimensions against the 1 of kind 'r'"),
    ],
)
@pytest.mark.parametrize("chips", ["1", "2"])
def test_network_of_unknown_kind(
    old: str, new: str, message: str, chips: str, capsys: Capture, tmp_path: Path
) -> None:  # fmt: skip
    text = resources.files(systems).joinpath("sn30.yaml").read_text(encoding="utf-8")
    (tmp_path / "machine.yaml").write_text(text.replace(old, new, 1))
    model = save_convolution(tmp_path / "conv1.onnx")

    status, printed = outcome(
        capsys, str(model), "--pes", "4", "--system", str(tmp_path / "machine.yaml"), "--chips", chips
    )
    assert status == 1
    assert message in printed


def test_a_sum_of_more_streams_than_operations_in_a_cycle(capsys: Capture, tmp_path: Path) -> None:
    """Its task takes an element of each of 12 streams in a cycle: 12 operations in one, against two of each element."""
    path = tmp_path / "sum.onnx"
    onnx.save(model_from_text("g (float[12] x) => (float y) { n = Neg(x) y = ReduceSum<keepdims=0>(n) }"), path)

    assert outcome(capsys, str(path), "--pes", "4", "--expand", "published", "--granularity", "pieces=12") == (0, "")


@pytest.mark.parametrize("option", [(), ("--fifo", "minimal"), ("--objective", "fifo"), ("--effort", "high")])
def test_graph_of_nothing_has_a_schedule(option: tuple[str, ...], capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "nothing.dag"
    path.write_text("dfcompile-dag/1 nothing\n")

    assert outcome(capsys, "schedule", str(path), "--pes", "4", *option) == (0, "")


def test_a_table_that_constants_give_is_one_on_each_chip(capsys: Capture, tmp_path: Path) -> None:
    """A chip's part of it was an operand of the lookup, which on one chip reads it from memory."""
    loss = 'y = SoftmaxCrossEntropyLoss<reduction="none">(scores, labels)'
    text = f"g (int32[2,1] labels) => (float[2,1] y) <float[2,1,1] scores = {{0, -1.625}}> {{ {loss} }}"
    onnx.save(model_from_text(text), tmp_path / "loss.onnx")

    words = ("--pes", "2", "--expand", "published", "--system", "sn40_like", "--chips", "4")
    assert outcome(capsys, str(tmp_path / "loss.onnx"), *words) == (0, "")


def test_an_output_without_elements_that_is_declared_otherwise_is_refused(capsys: Capture, tmp_path: Path) -> None:
    """It was put apart from what is computed again and again."""
    text = "g (int64[0,2] x) => (bool[0,2] y) { y = Div(x, x) }"
    onnx.save(model_from_text(text), tmp_path / "declared.onnx")

    status, printed = outcome(capsys, str(tmp_path / "declared.onnx"), "--pes", "4")

    assert status == 1
    assert "output 'y': declared otherwise than int64[0, 2], which is computed" in printed


def test_the_bound_over_expansions_knows_that_operators_of_constants_send_streams(
    capsys: Capture, tmp_path: Path
) -> None:
    """A sum that takes one stream from each task has fewer cycles than elements, also where constants made them."""
    loss = 'y = SoftmaxCrossEntropyLoss<reduction="sum">(scores, labels)'
    text = f"g () => (float y) <float[2,1] scores = {{1.875, 0.125}}, int32[2] labels = {{0, 0}}> {{ {loss} }}"
    onnx.save(model_from_text(text), tmp_path / "sum.onnx")

    words = ("--pes", "1", "--partition", "sb-rlx", "--no-barrier")
    assert outcome(capsys, str(tmp_path / "sum.onnx"), *words) == (0, "")


def test_what_is_optimal_on_several_chips_is_the_best_chain(capsys: Capture, tmp_path: Path) -> None:
    """The bound of all numbers of chips proved the time, that of the chips in use did not."""
    nodes = "y = DeformConv<offset_group=2, strides=[2, 2], pads=[0, 0, 1, 1]>(x, w, offsets, bias, mask)"
    drawn = np.random.default_rng(0)
    x, w = (drawn.normal(size=shape).astype(np.float32) for shape in ((1, 2, 4, 3), (2, 2, 1, 1)))
    inputs = "float[1,4,3,2] offsets, float[2] bias, float[1,2,3,2] mask"
    model = model_from_text(f"g ({inputs}) => (float[1,2,3,2] y) {{ {nodes} }}", x=x, w=w)
    model.opset_import[0].version = 20
    onnx.save(model, tmp_path / "deform.onnx")

    words = ("--pes", "64", "--system", "h100", "--chips", "8", "--partition", "work-ordered")
    assert outcome(capsys, str(tmp_path / "deform.onnx"), *words) == (0, "")


def test_a_part_of_what_was_gathered_for_other_readers_needs_no_exchange(capsys: Capture, tmp_path: Path) -> None:
    """Two chips split the rows of a lookup, sums over all of it are whole on both, and its scaling splits columns."""
    graph = """g (float16[3,3,4] x, float16[4,3,1] z) => (float16[4,3,1] a, float16[4,3,1] y)
        {
            l = GatherElements <axis = -3> (x, i)
            a = GlobalAveragePool(z)
            y = LayerNormalization <axis = -3> (l, s, b)
        }"""
    numbers = np.arange(12).reshape(4, 3, 1)
    path = tmp_path / "gathered.onnx"
    halves = (numbers - 5).astype(np.float16) / 2
    onnx.save(model_from_text(graph, i=(numbers % 3).astype(np.int32), s=halves, b=halves), path)
    words = ("--pes", "16", "--system", "sn10", "--chips", "8", "--partition", "sb-rlx")

    assert outcome(capsys, str(path), *words) == (0, "")
