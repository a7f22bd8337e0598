"""Checks for expansions, ours and those of plug-ins: numbers, volumes, invariants, schedules, determinism."""

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TypeAlias

import dace
import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag import CanonicalDag, format_dag
from dfcompile.canonical_dag.extraction.extract import extract
from dfcompile.frontend import (
    Coverage,
    Level,
    ModelNode,
    OperatorNode,
    Port,
    Program,
    input_connector,
    output_connector,
)
from dfcompile.lowering import CanonicalOperator, Choice, lower_to_maps, registered_expansions
from dfcompile.lowering.execution.compiled_run import run_program
from dfcompile.lowering.operator_nodes import operator_node
from dfcompile.scheduler import ScheduleOptions, check, schedule

Values: TypeAlias = npt.NDArray[np.generic]
PES = (1, 3, 64)
PARTITIONS = ("sb-rlx", "sb-lts")
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
    connectors = [input_connector(position) for position in range(len(inputs))]
    node = operator_node(operator, "op", "op", connectors, [output_connector(0)])
    return program_of_node(node, Level.CANONICAL, inputs, output, dtype)


def program_of_node(
    node: OperatorNode, level: Level, inputs: Sequence[tuple[int, ...]], output: tuple[int, ...], dtype: str = "float32"
) -> Program:
    """Return a program that is one operator node ``x0, x1, … -> y`` called ``op``; see `canonical_program`."""
    sdfg = dace.SDFG(node.op_type)
    state = sdfg.add_state("main", is_start_block=True)
    names = [f"x{position}" for position in range(len(inputs))]
    state.add_node(node)
    for name, shape in zip([*names, "y"], [*inputs, output], strict=True):
        sdfg.add_array(name, shape, dace.dtypes.dtype_to_typeclass(np.dtype(dtype).type))
    for position, name in enumerate(names):
        memlet = dace.Memlet.from_array(name, sdfg.arrays[name])
        state.add_edge(state.add_read(name), None, node, input_connector(position), memlet)
    state.add_edge(node, output_connector(0), state.add_write("y"), None, dace.Memlet.from_array("y", sdfg.arrays["y"]))
    ports = tuple(Port(name, name, shape, dtype) for name, shape in zip(names, inputs, strict=True))
    result = (Port("y", "y", output, dtype),)
    nodes = (ModelNode("op", node.op_type, Coverage.COSTED),)
    return Program("op", level, sdfg, ports, result, MappingProxyType({}), nodes)


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
    lowered = lower_to_maps(program, table, choices)
    dag = extract(lowered.sdfg)
    again = extract(lower_to_maps(program, table, choices).sdfg)
    assert format_dag(dag) == format_dag(again), f"{op_type}={name}: two runs give two canonical DAGs"
    for pes in PES:
        for partition in PARTITIONS:
            check(dag, schedule(dag, ScheduleOptions(pes=pes, partition=partition)))
    generator = np.random.default_rng(seed)
    data = [np.asarray(generator.uniform(-1, 1, size=shape), dtype=dtype) for shape in inputs]
    found = run_program(lowered, {f"x{position}": value for position, value in enumerate(data)})["y"]
    error = np.max(np.abs(np.subtract(found, reference(*data), dtype=np.float64)), initial=0.0)
    assert error < TOLERANCE, f"{op_type}={name}: absolute error {error:.3g} against less than {TOLERANCE}"
    return dag
