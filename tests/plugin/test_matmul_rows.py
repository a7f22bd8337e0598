"""The expansion of this package, checked with what dfcompile offers to every plug-in."""

import numpy as np

from dfcompile.lowering.operators import MatMul
from dfcompile.testing.expansions import check_expansion


def test_one_task_per_row() -> None:
    dag = check_expansion(MatMul(), "lab-rows", inputs=[(3, 4), (4, 5)], output=(3, 5), reference=np.matmul)

    assert dag.tasks_count == 3
    assert dag.volume_in[dag.is_computational].tolist() == [20, 20, 20]
    assert dag.volume_out[dag.is_computational].tolist() == [5, 5, 5]
