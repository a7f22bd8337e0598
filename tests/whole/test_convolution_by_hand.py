"""The tiled convolution that docs/mapping.md explains by hand: 512 filters of 512 x 3 x 3, 49 windows, 1,024 PEs."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import dfcompile as df
from tests.onnx_text import model_from_text

CYCLES = 512 * 3 * 3  # of a filter and a window
WEIGHTS, INPUT, OUTPUT = (4 * elements for elements in (512 * 512 * 3 * 3, 512 * 9 * 9, 512 * 7 * 7))


@pytest.fixture(scope="module")
def convolution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = "g (float[1,512,9,9] x) => (float[1,512,7,7] y) { y = Conv(x, w) }"
    file = tmp_path_factory.mktemp("models") / "conv.onnx"
    onnx.save(model_from_text(text, w=np.zeros((512, 512, 3, 3), np.float32)), file)
    return file


def mapped(model: Path, tasks: str, pieces: int) -> tuple[int | None, float]:
    """Return the makespan, and the bytes that DRAM moves."""
    expand = {"Conv": "direct", "Convolution": tasks}
    (result,) = df.compile(model, pes=[1024], expand=expand, granularity=f"pieces={pieces}").report.results
    assert result.mapping is not None
    return result.schedule.makespan_cycles, result.mapping.dram_bytes


def test_windows_in_step_share_each_filter(convolution: Path) -> None:
    assert mapped(convolution, "windows", 1024) == (26 * CYCLES, WEIGHTS + INPUT + OUTPUT)


def test_filters_that_do_not_fit_come_again_for_every_window(convolution: Path) -> None:
    _, moved = mapped(convolution, "filters", 1024)

    assert 3 * moved > 2 * 28 * WEIGHTS  # SRAM has room for less than a third of them


def test_few_filters_at_a_time_fit(convolution: Path) -> None:
    cycles, moved = mapped(convolution, "filters", 3584)

    assert cycles == 4 * 7 * CYCLES
    assert moved < 1.3 * WEIGHTS
