"""The driver runs stages and checks what they hand over."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from dfcompile.driver import explore
from dfcompile.errors import UserError, VerificationError
from tests.asked_options import asked
from tests.onnx_files import save_convolution
from tests.onnx_text import model_from_text

NAN = np.array(np.nan, np.float32)  # of which nothing is computed when the model is read


@pytest.fixture(scope="module")
def convolution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_convolution(tmp_path_factory.mktemp("models") / "small.onnx", shape=(1, 1, 8, 8), filters=(2, 1, 3, 3))


def test_points_are_the_product_of_pes_and_combinations(convolution: Path) -> None:
    found = explore(asked(convolution, (4, 2), "MatMul=mv,op"))

    assert [(point.pes, point.variant.expansions["MatMul"]) for point in found.points] == [
        (4, "mv"),
        (4, "op"),
        (2, "mv"),
        (2, "op"),
    ]
    assert found.points[0].variant is found.points[2].variant


def test_no_fifo_is_larger_than_allowed_neither_of_the_schedule_nor_of_the_mapping(tmp_path: Path) -> None:
    """Of a softmax: the exponentials wait for their sum."""
    model = model_from_text("softmax (float[1,8] x) => (float[1,8] y) { y = Softmax<axis = 1>(x) }")
    onnx.save(model, tmp_path / "softmax.onnx")
    free, limited = (explore(asked(tmp_path / "softmax.onnx", (8,), max_fifo=most)).points[0] for most in (None, 2))

    assert free.scheduled.schedule.fifo_capacity.max() > 2
    assert limited.scheduled.schedule.fifo_capacity.max() <= 2
    assert limited.shown_schedule[1].fifo_capacity.max() <= 2


def test_of_constants_alone_nothing_is_split_over_chips(tmp_path: Path) -> None:
    model = model_from_text("g () => (float[2,3] y) { y = PRelu(a, b) }", a=np.ones((2, 3), np.float32), b=NAN)
    onnx.save(model, tmp_path / "constant.onnx")
    (point,) = explore(asked(tmp_path / "constant.onnx", (4,), system="sn30", chips=(4,))).points

    assert point.attained.chips == 1


def test_wrong_options_are_found_before_the_model_is_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="MatMul has no 'nope'"):
        explore(asked(tmp_path / "missing.onnx", (4,), "MatMul=nope"))


def test_schedule_that_the_checker_rejects_is_a_bug(convolution: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(*_: object) -> None:
        raise VerificationError("rejected")

    monkeypatch.setattr("dfcompile.scheduler.checked_schedule.check", reject)
    with pytest.raises(VerificationError, match="rejected"):
        explore(asked(convolution, (4,)))


def test_mapping_that_the_checker_rejects_is_a_bug(convolution: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def reject(*_: object) -> None:
        raise VerificationError("rejected")

    monkeypatch.setattr("dfcompile.dfmodel_backend.solve.chip_counts.check_mapping", reject)
    with pytest.raises(VerificationError, match="rejected"):
        explore(asked(convolution, (4,)))
