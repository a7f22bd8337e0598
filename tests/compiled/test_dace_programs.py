"""Programs written with ``@dace.program``: lowered, compiled and run, against NumPy in double precision."""

from pathlib import Path

import numpy as np
import pytest

from dfcompile.canonical_dag.extraction import extract
from dfcompile.frontend import Model, ReadOptions, read_model, reference_answer
from dfcompile.lowering import Choice, lower_to_canonical, lower_to_maps, registered_expansions
from dfcompile.lowering.execution.compiled_run import run_program
from tests.written_programs import ProgramWriter

TABLE = registered_expansions()
EXAMPLE = Path(__file__).parents[2] / "examples" / "pusch_mimo" / "mimo.py"

SYSTEM = """
@dace.program
def given(A: dace.TYPE[N, M, M], b: dace.TYPE[N, M, 2], x: dace.TYPE[N, M, 2], f: dace.TYPE[N, M, M]):
    for n in dace.map[0:N]:
        f[n] = np.linalg.cholesky(A[n])
        x[n] = np.linalg.solve(A[n], b[n]) + np.linalg.inv(A[n]) @ b[n]

def example_inputs(N, M):
    generator = np.random.default_rng(3)
    def drawn(*shape):
        real = generator.standard_normal(shape)
        return real + 1j * generator.standard_normal(shape) if "TYPE".startswith("c") else real
    root = drawn(N, M, M)
    matrices = root @ np.conj(np.swapaxes(root, 1, 2)) + np.eye(M)
    return {"A": matrices.astype(np.TYPE), "b": drawn(N, M, 2).astype(np.TYPE)}
"""

STENCIL = """
@dace.program
def given(A: dace.float64[N, M], B: dace.float64[N, M]):
    B[1:-1, 1:-1] = 0.25 * (A[:-2, 1:-1] + A[2:, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:])
    return np.sum(B * B), np.max(B, axis=1)
"""

# Jacobi's method, three steps of it: A = D + R, x = (b - R x) / D.
JACOBI = """
@dace.program
def given(A: dace.float64[N, M, M], b: dace.float64[N, M], x: dace.float64[N, M]):
    d = np.zeros((N, M), dtype=np.float64)
    for n, i in dace.map[0:N, 0:M]:
        d[n, i] = A[n, i, i]
    for n in dace.map[0:N]:
        z = b[n] / d[n]
        for step in dace.unroll(range(3)):
            z = z + (b[n] - A[n] @ z) / d[n]
        x[n] = z

def example_inputs(N, M):
    generator = np.random.default_rng(4)
    return {"A": generator.standard_normal((N, M, M)) + 9 * np.eye(M), "b": generator.standard_normal((N, M))}
"""


# A function that is called, a choice by data, a product of batches.
CALLS = """
@dace.program
def shifted(v: dace.float64[M]):
    return np.where(v > 0, v, 0.5 * v) + 1

@dace.program
def given(A: dace.float64[N, M], B: dace.float64[N, M], C: dace.float64[N, M, M], D: dace.float64[N, M, M]):
    for n in dace.map[0:N]:
        B[n] = shifted(A[n])
    D[:] = C @ C
    return np.sum(B, axis=0), np.mean(D)
"""


# Complex numbers beside integers, real numbers and loops, which C++ has no operations for.
MIXED = """
@dace.program
def given(A: dace.complex64[N, M], d: dace.float64[N], B: dace.complex128[N], C: dace.complex64[N, M]):
    for n in dace.map[0:N]:
        C[n] = A[n] * 2.5 - np.mean(A[n])
    for i in dace.map[0:N]:
        with dace.tasklet:
            a << A[i, 0]
            x << d[i]
            b >> B[i]
            b = (a / 3 - i) * x if x > 0 else 1j * a
"""

# In place: rows and columns that are read are not those that are written.
FACTORS = """
@dace.program
def given(A: dace.float64[N, 4, 4], B: dace.float64[N, M]):
    for k in dace.unroll(range(3)):
        for n in dace.map[0:N]:
            for i in dace.map[k + 1:4]:
                A[n, i, k] = A[n, i, k] / A[n, k, k]
        for n in dace.map[0:N]:
            for i, j in dace.map[k + 1:4, k + 1:4]:
                A[n, i, j] = A[n, i, j] - A[n, i, k] * A[n, k, j]
    B[:] = np.sum(A)

def example_inputs(N, M):
    return {"A": np.random.default_rng(5).standard_normal((N, 4, 4)) + 9 * np.eye(4)}
"""

# Gram and Schmidt's method.
ORTHOGONAL = """
@dace.program
def given(A: dace.float64[N, M, 3], Q: dace.float64[N, M, 3], R: dace.float64[N, 3, 3]):
    for n in dace.map[0:N]:
        V = A[n] * 1.0
        for k in dace.unroll(range(3)):
            r = np.sqrt(np.sum(V[:, k] * V[:, k]))
            R[n, k, k] = r
            Q[n, :, k] = V[:, k] / r
            for j in dace.unroll(range(k + 1, 3)):
                d = np.sum(Q[n, :, k] * V[:, j])
                R[n, k, j] = d
                V[:, j] = V[:, j] - d * Q[n, :, k]
"""


def relative_errors(model: Model, *choices: Choice) -> list[float]:
    """Return the error of each output of the lowered program, as a part of its size."""
    maps = lower_to_maps(lower_to_canonical(model.program, TABLE, choices), TABLE, choices)
    extract(maps.sdfg, parameters=tuple(maps.parameters))  # one state, only map scopes, canonical
    inputs = model.example_feeds(seed=0)
    expected = reference_answer(model, inputs).outputs
    ports = zip(maps.inputs, inputs, strict=True)
    found = run_program(maps, {port.name: value for port, value in ports}, optimised=False)
    return [
        float(
            np.linalg.norm(found[port.name].astype(complex) - value.astype(complex))
            / np.linalg.norm(value.astype(complex))
        )
        for port, value in zip(maps.outputs, expected, strict=True)
    ]


@pytest.mark.parametrize(
    ("way", "dtype"),
    [
        *((way, dtype) for way in ("cholesky", "gauss-jordan", "lu") for dtype in ("complex64", "float64")),
        ("lu", "complex128"),
    ],
)
def test_linear_algebra(way: str, dtype: str, write_program: ProgramWriter) -> None:
    model = read_model(write_program(SYSTEM.replace("TYPE", dtype)), ReadOptions(dims={"N": 3, "M": 5}))

    errors = relative_errors(model, Choice("linalg.inv", way), Choice("linalg.solve", way))

    assert max(errors) <= (1e-4 if dtype == "complex64" else 1e-10)


def test_detection_of_generated_data() -> None:
    model = read_model(EXAMPLE, ReadOptions(dims={"N": 4, "R": 8, "L": 4}))

    (error,) = relative_errors(model, Choice("linalg.inv", "cholesky"))

    assert error <= 1e-4


@pytest.mark.parametrize(
    ("text", "limit"),
    [(STENCIL, 1e-14), (JACOBI, 1e-14), (CALLS, 1e-14), (FACTORS, 1e-14), (ORTHOGONAL, 1e-13), (MIXED, 1e-6)],
)
def test_other_programs(text: str, limit: float, write_program: ProgramWriter) -> None:
    model = read_model(write_program(text), ReadOptions(dims={"N": 7, "M": 6}))

    assert max(relative_errors(model)) <= limit
