"""Loop nests: their text, and the affine functions with which they access arrays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.frontend.affine import affine_text
from dfcompile.lowering import lower_to_canonical, lower_to_nests, registered_expansions
from dfcompile.lowering.expressions import affine
from tests.onnx_text import program_from_text

TABLE = registered_expansions()
NAMES = ("i", "j", "k0")


def test_text_has_loops_tasks_reads_and_what_is_combined() -> None:
    text = "g (float[6] x, float[3,1] y) => (float[2,1] z) { a = Reshape(x, s) z = MatMul(a, y) }"
    program = program_from_text(text, s=np.array([2, 3]))
    nests = lower_to_nests(lower_to_canonical(program, TABLE), TABLE)

    assert str(nests).splitlines() == [
        "program g level=nests",
        "view a = x",
        "map MatMul_0.matmul.broadcast (i<2, k<3): a = a[i, k]; MatMul_0_matmul_rows[i, k] = a",
        (
            "map MatMul_0.matmul.mv (*j<1, i<2, k<3): a = MatMul_0_matmul_rows[i, k]; b = y[k, j]; "
            "MatMul_0_matmul_columns[i, j] sum= a * b"
        ),
        "map MatMul_0.matmul.gather (i<2, j<1): part = MatMul_0_matmul_columns[i, j]; z[i, j] = part",
    ]


@given(st.dictionaries(st.sampled_from(["", *NAMES]), st.integers(-9, 9)))
def test_text_of_an_affine_function_is_read_as_the_function(factors: dict[str, int]) -> None:
    read = affine(affine_text(factors))

    assert {name: factor for name, factor in read.items() if factor} == {
        name: factor for name, factor in factors.items() if factor
    }


@given(st.dictionaries(st.sampled_from(["", *NAMES]), st.integers(-9, 9)))
def test_text_with_other_names_has_the_same_values(factors: dict[str, int]) -> None:
    values = dict(zip(NAMES, (3, 5, 7), strict=True))
    renamed = {name: f"{name}_" for name in NAMES}
    text = affine_text(factors, renamed)

    assert eval(text, {f"{name}_": value for name, value in values.items()}) == sum(
        factor * values.get(name, 1) for name, factor in factors.items()
    )
