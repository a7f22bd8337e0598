"""Checks for expansions, ours and those of plug-ins: numbers, volumes, invariants, schedules, determinism."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import extract
from dfcompile.frontend import Coverage, Level, ModelNode, Program
from dfcompile.generators.single_operators import program_of_operator
from dfcompile.lowering import CanonicalOperator, Choice, lower_to_canonical, lower_to_maps, registered_expansions
from dfcompile.lowering.execution.compiled_run import run_program
from dfcompile.lowering.execution.verification import verified_deviation
from dfcompile.records import replace
from dfcompile.testing.canonical_dags import check_dag
from dfcompile.testing.models import NO_PARAMETERS, model_of_text

Values: TypeAlias = npt.NDArray[np.generic]
TOLERANCE = 1e-5  # absolute, for operands between -1 and 1


def canonical_program(
    operator: CanonicalOperator, inputs: Sequence[tuple[int, ...]], output: tuple[int, ...], dtype: str = "float32"
) -> Program:
    """Return a program of level 1 that is one canonical operator ``x0, x1, … -> y``.

    Args:
        operator: such as ``MatMul(transpose_a=True)``.
        inputs: shapes of the operands.
        output: shape of the result.
        dtype: numpy name, of all arrays.
    """
    op_type, operands = type(operator).__name__, {f"x{position}": shape for position, shape in enumerate(inputs)}
    program = program_of_operator(op_type, operator.attributes(), Level.CANONICAL, operands, ("y", output), dtype)
    return replace(program, nodes=(ModelNode("op", op_type, Coverage.COSTED),))


def check_expansion(
    operator: CanonicalOperator,
    name: str,
    *,
    inputs: Sequence[tuple[int, ...]],
    output: tuple[int, ...],
    reference: Callable[..., Values],
    dtype: str = "float32",
    seed: int = 0,
) -> CanonicalDag:
    """Check one expansion of a canonical operator and return its canonical DAG.

    * Numbers: the lowered operator, compiled and run on random data, gives what ``reference`` gives.
    * Volumes and invariants: the canonical DAG can be extracted and is verified; every computational node is canonical.
    * Schedules for several numbers of processing elements are accepted by the independent checker.
    * Determinism: all of it a second time gives the same bytes.

    Args:
        operator: such as ``MatMul(transpose_a=True)``.
        name: of the expansion.
        inputs: shapes of the operands.
        output: shape of the result.
        reference: called with the operands as arrays; returns the result.
        dtype: numpy name, of all arrays.
        seed: of the random data.

    Raises:
        AssertionError: the numbers differ, or two runs do.
        DfcompileError: the expansion does not exist, or a stage rejects what it built.
    """
    program = canonical_program(operator, inputs, output, dtype)
    op_type = type(operator).__name__
    choices = (Choice(op_type, name),)
    table = registered_expansions()
    table.check(choices[0])
    lowered, again = (lower_to_maps(program, table, choices) for _ in range(2))
    dag = extract(lowered.sdfg)
    check_dag(dag, extract(again.sdfg), f"{op_type}={name}")
    generator = np.random.default_rng(seed)
    data = [np.asarray(generator.uniform(-1, 1, size=shape), dtype=dtype) for shape in inputs]
    found = run_program(lowered, {f"x{position}": value for position, value in enumerate(data)})["y"]
    error = np.max(np.abs(np.subtract(found, reference(*data), dtype=np.float64)), initial=0.0)
    assert error < TOLERANCE, f"{op_type}={name}: absolute error {error:.3g} against less than {TOLERANCE}"
    return dag


def check_onnx_expansion(
    op_type: str,
    name: str,
    *,
    graph: str,
    parameters: Mapping[str, Values] = NO_PARAMETERS,
    seed: int = 0,
) -> CanonicalDag:
    """Check one expansion of an ONNX operator in a small graph and return its canonical DAG.

    The same is checked as by `check_expansion`; the reference is onnxruntime where it is installed, else ONNX's own
    implementation. Other operators are lowered by their defaults.

    Args:
        op_type: ONNX operator type, such as ``Conv``.
        name: of the expansion.
        graph: in ONNX's text form, such as ``g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }``.
        parameters: values of constant operands by name.
        seed: of the random data.

    Raises:
        AssertionError: the graph has no such operator, or two runs differ.
        DfcompileError: the expansion does not exist, a stage rejects what it built, or the numbers differ.
    """
    model = model_of_text(graph, parameters)
    choices, table = (Choice(op_type, name),), registered_expansions()
    table.check(choices[0])
    lowered, again = (lower_to_maps(lower_to_canonical(model.program, table, choices), table) for _ in range(2))
    used = [chosen for chosen in lowered.chosen if (chosen.op_type, chosen.name) == (op_type, name)]
    assert used, f"{op_type}={name}: no operator of the graph is lowered by it"
    dag = extract(lowered.sdfg)
    check_dag(dag, extract(again.sdfg), f"{op_type}={name}")
    verified_deviation(model, lowered, seed)
    return dag
