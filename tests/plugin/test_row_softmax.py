"""The canonical operator of this package, its expansion checked with what dfcompile offers to every plug-in."""

import numpy as np
import numpy.typing as npt
from mylab.row_softmax import RowSoftmax

from dfcompile.testing.expansions import check_expansion


def softmax(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    exponentials: npt.NDArray[np.float64] = np.exp(x)
    total: npt.NDArray[np.float64] = exponentials.sum(axis=1, keepdims=True)
    return exponentials / total


def test_two_tasks() -> None:
    dag = check_expansion(RowSoftmax(1), "two-scopes", inputs=[(3, 4)], output=(3, 4), reference=softmax)

    assert dag.tasks_count == 2
    assert [kernel.op for kernel in dag.kernels] == ["RowSoftmax"]
