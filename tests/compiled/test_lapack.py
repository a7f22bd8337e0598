"""Expansions that call LAPACK: compiled and run against NumPy where it is installed, and never scheduled."""

from pathlib import Path

import numpy as np
import pytest
from dace.codegen.exceptions import CompilationError
from dace.sdfg import SDFG

import dfcompile as df
from dfcompile.errors import UserError
from dfcompile.frontend import ReadOptions, read_model, reference_answer
from dfcompile.lowering.execution import lapack
from tests.written_programs import ProgramWriter

EXAMPLE = Path(__file__).parents[2] / "examples" / "pusch_mimo" / "mimo.py"
TEXT = """
@dace.program
def given(A: dace.TYPE[N, M, M], b: dace.TYPE[N, M, 2], v: dace.TYPE[N, M],
          f: dace.TYPE[N, M, M], i: dace.TYPE[N, M, M], w: dace.TYPE[N, M], x: dace.TYPE[N, M, 2]):
    for n in dace.map[0:N]:
        f[n] = np.linalg.cholesky(A[n])
        x[n] = np.linalg.solve(A[n], b[n])
        w[n] = np.linalg.solve(A[n], v[n])
        i[n] = np.linalg.inv(A[n])
"""


def drawn(dtype: str, *shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.complexfloating]]:
    generator = np.random.default_rng([len(shape), *shape])
    real, imaginary = generator.standard_normal(shape), generator.standard_normal(shape)
    return np.asarray(real + 1j * imaginary if dtype.startswith("c") else real)


def computed(
    write: ProgramWriter, dtype: str, expand: dict[str, str], rows: int = 5
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return what the compiled program gives for four matrices, and its inputs.

    The second matrix is singular, the third one has a NaN.
    """
    root = drawn(dtype, 4, rows, rows)
    matrices = root @ np.conj(np.swapaxes(root, 1, 2)) + np.eye(rows)
    matrices[1] = 0
    matrices[2, 0, 0] = np.nan
    inputs = {"A": matrices, "b": drawn(dtype, 4, rows, 2), "v": drawn(dtype, 4, rows)}
    typed = {name: value.astype(dtype) for name, value in inputs.items()}
    try:
        found = df.run(write(TEXT.replace("TYPE", dtype)), typed, expand=expand, dims={"N": 4, "M": rows})
    except UserError as error:
        if lapack.HINT in str(error):
            pytest.skip(str(error))
        raise
    return found, inputs


def check(found: dict[str, np.ndarray], inputs: dict[str, np.ndarray], limit: float) -> None:
    a, b, v = inputs["A"][::3], inputs["b"][::3], inputs["v"][::3]
    expected = {
        "f": np.linalg.cholesky(a),
        "i": np.linalg.inv(a),
        "w": np.linalg.solve(a, v[..., None])[..., 0],
        "x": np.linalg.solve(a, b),
    }
    for name, value in expected.items():
        assert np.linalg.norm(found[name][::3] - value) <= limit * np.linalg.norm(value), name
        assert np.isnan(found[name][1:3]).all(axis=tuple(range(1, found[name].ndim))).all(), name


EVERY = {"linalg.inv": "lapack", "linalg.solve": "lapack", "linalg.cholesky": "lapack"}


@pytest.mark.parametrize(
    ("dtype", "limit"), [("float32", 1e-4), ("float64", 1e-10), ("complex64", 1e-4), ("complex128", 1e-10)]
)
def test_routines(dtype: str, limit: float, write_program: ProgramWriter) -> None:
    found, inputs = computed(write_program, dtype, EVERY)

    assert all(value.dtype == dtype for value in found.values())
    check(found, inputs, limit)


def test_factors_and_triangular_systems(write_program: ProgramWriter) -> None:
    """Lower and upper triangles, those of adjoint matrices, and elimination."""
    steps = {"Eliminate": "lapack", "Factor": "lapack", "TriangularSolve": "lapack"}
    found, inputs = computed(
        write_program, "complex128", {"linalg.inv": "gauss-jordan", "linalg.solve": "cholesky", **steps}
    )

    check(found, inputs, 1e-10)


def test_unit_triangles(write_program: ProgramWriter) -> None:
    ways = {"linalg.inv": "lu", "linalg.solve": "lu", "linalg.cholesky": "lapack", "TriangularSolve": "lapack"}
    found, inputs = computed(write_program, "complex128", ways)

    check(found, inputs, 1e-10)


def test_detection_of_generated_data() -> None:
    dims = {"N": 4, "R": 16, "L": 4}
    try:
        (found,) = df.run(EXAMPLE, dims=dims, expand={"linalg.inv": "lapack"}).values()
    except UserError as error:
        if lapack.HINT in str(error):
            pytest.skip(str(error))
        raise
    model = read_model(EXAMPLE, ReadOptions(dims=dims))
    (expected,) = reference_answer(model, model.example_feeds(seed=0)).outputs

    assert np.linalg.norm(found.astype(complex) - expected.astype(complex)) <= 1e-4 * np.linalg.norm(expected)


@pytest.mark.parametrize(
    ("expand", "message"),
    [
        (
            "linalg.inv=lapack",
            r"^node 'inv_line29': found a call of LAPACK, which can be run \(dfcompile\.run\) but not ",
        ),
        ("linalg.inv=lapack auto", r"^node 'inv_line29': .*: a call of LAPACK against canonical tasks$"),
        ("linalg.inv=lu Factor=lapack", r"^node 'inv_line29': .*LAPACK exchanges rows \(getrf\) against factors"),
    ],
)
def test_calls_are_not_scheduled(expand: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        df.compile(EXAMPLE, pes=4, dims={"N": 2, "R": 4, "L": 2}, expand=expand.split())


@pytest.mark.parametrize(
    "output", ["x.cpp:9:10: fatal error: lapacke.h: No such file or directory", "ld: cannot find -llapacke"]
)
def test_without_lapack(output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: SDFG) -> None:
        raise CompilationError(output)

    monkeypatch.setattr(SDFG, "compile", fails)

    with pytest.raises(UserError, match=r"compiling the lowered model: LAPACK is not installed \(try 'apt-get install"):
        df.run(EXAMPLE, dims={"N": 2, "R": 4, "L": 2}, expand={"linalg.inv": "lapack"})


def test_inputs_that_do_not_fit() -> None:
    dims = {"N": 2, "R": 4, "L": 2}
    with pytest.raises(UserError, match=r"^input 'H': no value against complex64\[2, 4, 2\]$"):
        df.run(EXAMPLE, {}, dims=dims)
    with pytest.raises(UserError, match=r"^input 'h': the model has none of that name \(did you mean 'H'\?\)$"):
        df.run(EXAMPLE, {"h": np.zeros(2)}, dims=dims)
    with pytest.raises(UserError, match=r"^input 'H': float64\[2\] against complex64\[2, 4, 2\]$"):
        df.run(EXAMPLE, {"H": np.zeros(2), "K": np.zeros(2), "y": np.zeros(2)}, dims=dims)
    with pytest.raises(UserError, match=r"^--expand: 2 combinations, auto or quick against one expansion of each"):
        df.run(EXAMPLE, dims=dims, expand=["linalg.inv=lu,cholesky"])
    with pytest.raises(UserError, match=r"linalg\.solve"):
        df.run(EXAMPLE, dims=dims, expand=["linalg.solve=lu"])
