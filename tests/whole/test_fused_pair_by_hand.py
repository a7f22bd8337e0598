"""The fused pair that docs/mapping.md explains by hand: 2,048 pairs of products of 16 x 16 matrices on 512 PEs."""

from pathlib import Path

import onnx
import pytest

import dfcompile as df
from tests.onnx_text import model_from_text

SHAPE, ARRAY = "float[2048,16,16]", 4 * 2048 * 16 * 16
CYCLES = 2 * 2048 * 16**3 // 512


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = f"g ({SHAPE} a, {SHAPE} b, {SHAPE} c) => ({SHAPE} y) {{ z = MatMul(a, b) y = MatMul(z, c) }}"
    file = tmp_path_factory.mktemp("models") / "pair.onnx"
    onnx.save(model_from_text(text), file)
    return file


@pytest.mark.parametrize(
    ("granularity", "arrays_moved", "sram_bytes"),
    [
        ("declared", 6, 512 * 64 + 32 * 4),
        ("pieces=2048", 4, 512 * (1024 + 1024 + 64)),
        ("pieces=4096", 4, 256 * (1024 + 1024) + 512 * 64),
    ],
)
def test_slices_of_what_is_between_stay_on_the_chip(
    pair: Path, granularity: str, arrays_moved: int, sram_bytes: int
) -> None:
    (result,) = df.compile(pair, pes=[512], expand={"MatMul": "rows"}, granularity=granularity).report.results
    mapping = result.mapping
    assert mapping is not None

    assert result.schedule.makespan_cycles == CYCLES
    assert mapping.dram_bytes == arrays_moved * ARRAY
    assert mapping.time_s * 1e9 == pytest.approx(max(CYCLES, mapping.dram_bytes / 300))
    assert mapping.sram_bytes == sram_bytes
