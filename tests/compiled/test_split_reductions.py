"""Reductions and products in parts, compiled and run against NumPy."""

import numpy as np
import pytest

from dfcompile.lowering import Reduction
from dfcompile.lowering.operators import MatMul, Reduce
from dfcompile.testing import check_expansion


@pytest.mark.parametrize(
    ("reduction", "reference", "parts", "dtype"),
    [
        (Reduction.SUM, np.sum, 8, "float16"),
        (Reduction.MAX, np.max, 4, "float32"),
    ],
)
def test_reduction_is_numpys_and_its_schedules_are_accepted(
    reduction: Reduction, reference: np.ufunc, parts: int, dtype: str
) -> None:
    dag = check_expansion(
        Reduce(reduction, (1,)),
        f"split{{parts={parts}}}",
        inputs=[(2, 37)],
        output=(2, 1),
        reference=lambda x: reference(x.astype(np.float64), axis=1, keepdims=True).astype(dtype),
        dtype=dtype,
    )

    assert dag.tasks_count >= 2 * parts


def test_product_is_numpys_and_its_schedules_are_accepted() -> None:
    check_expansion(
        MatMul(), "split-k{parts=4}", inputs=[(2, 19), (19, 3)], output=(2, 3), reference=lambda a, b: a @ b
    )
