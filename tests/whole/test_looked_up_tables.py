"""What lookups move: of a table no more than it has, and no less than is looked up of it."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.api.compile_model import compile_model
from dfcompile.report.figures import Result
from tests.examples import examples
from tests.onnx_text import model_from_text


def looked_up(folder: Path, sizes: tuple[int, int, int], pes: int, granularity: str) -> Result:
    """Return the result of looking up some rows of a table."""
    rows, columns, indices = sizes
    table = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    graph = f"g (int64[{indices}] i) => (float[{indices},{columns}] y) {{ y = Gather(t, i) }}"
    path = folder / "lookup.onnx"
    onnx.save(model_from_text(graph, t=table), path)
    (result,) = compile_model(path, pes=str(pes), expand=["published"], granularity=[granularity]).report.results
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lookups")


@given(
    sizes=st.tuples(st.integers(1, 40), st.integers(1, 20), st.integers(1, 40)),
    pes=st.sampled_from([1, 3, 16, 64]),
    pieces=st.integers(1, 100),
)
@examples(16)
def test_no_lookup_moves_less_than_is_proved(sizes: tuple[int, int, int], pes: int, pieces: int, folder: Path) -> None:
    """Of tables that several tasks read the DRAM traffic was that of one task."""
    rows, columns, indices = sizes
    result = looked_up(folder, sizes, pes, f"pieces={pieces}")

    assert result.traffic is not None
    beside = indices * (8 + 4 * columns)  # indices and what is looked up
    least, most = 4 * columns * min(rows, indices), 4 * columns * indices
    assert result.traffic.proved_bytes <= beside + least <= result.traffic.moved_bytes <= beside + most


@pytest.mark.parametrize("granularity", ["declared", "pieces=4", "pieces=64", "pieces=1000"])
def test_a_table_that_fits_is_fetched_once(granularity: str, folder: Path) -> None:
    result = looked_up(folder, (10, 8, 60), 64, granularity)

    assert result.traffic is not None
    assert result.traffic.moved_bytes == 4 * 10 * 8 + 60 * (8 + 4 * 8)
