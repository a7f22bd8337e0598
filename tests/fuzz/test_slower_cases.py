"""What is chosen by default is not slower than what else may be asked for: a few models; `make fuzz` draws others."""

from pathlib import Path

import pytest

from tests.fuzz.draw import Draw
from tests.fuzz.outcome import Verdict
from tests.fuzz.slower_cases import drawn_small_model, judge_slower


@pytest.mark.parametrize("seed", ["u0", "u1"])
def test_nothing_that_may_be_asked_for_is_faster(seed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    draw = Draw(seed)
    case = drawn_small_model(draw)
    Path("case.onnx").write_bytes(case.content)
    outcome = judge_slower(Path("case.onnx"), case, draw, lambda _: None)

    assert outcome.verdict is Verdict.ACCEPTED, outcome.detail
