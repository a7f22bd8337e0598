"""Checks for expansions, ours and those of plug-ins: numbers, volumes, invariants, schedules, determinism."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import dace
import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag import CanonicalDag, format_dag
from dfcompile.canonical_dag.extraction import extract
from dfcompile.frontend import (
    CANONICAL,
    AttributeValue,
    Coverage,
    Level,
    ModelNode,
    OperatorNode,
    Port,
    Program,
    input_connector,
    output_connector,
)
from dfcompile.lowering import Choice, lower_to_maps, registered_expansions
from dfcompile.lowering.execution.compiled_run import run_program
from dfcompile.scheduler import ScheduleOptions, check, schedule

Values: TypeAlias = npt.NDArray[np.generic]
NO_ATTRIBUTES: Mapping[str, AttributeValue] = MappingProxyType({})
PES = (1, 3, 64)
PARTITIONS = ("sb-rlx", "sb-lts")
TOLERANCE = 1e-5  # absolute, for operands between -1 and 1


def canonical_program(
    op_type: str,
    inputs: Sequence[tuple[int, ...]],
    output: tuple[int, ...],
    attributes: Mapping[str, AttributeValue] = NO_ATTRIBUTES,
    dtype: str = "float32",
) -> Program:
    """Return a program of level 1 that is one canonical operator ``x0, x1, … -> y``.

    Args:
        op_type: such as ``MatMul``.
        inputs: shapes of the operands.
        output: shape of the result.
        attributes: of the operator.
        dtype: numpy name, of all arrays.
    """
    sdfg = dace.SDFG(op_type)
    state = sdfg.add_state("main", is_start_block=True)
    names = [f"x{position}" for position in range(len(inputs))]
    node = OperatorNode(
        "op",
        dialect=CANONICAL,
        op_type=op_type,
        origin="op",
        attributes=attributes,
        inputs=[input_connector(position) for position in range(len(inputs))],
        outputs=[output_connector(0)],
    )
    state.add_node(node)
    for name, shape in zip([*names, "y"], [*inputs, output], strict=True):
        sdfg.add_array(name, shape, dace.dtypes.dtype_to_typeclass(np.dtype(dtype).type))
    for position, name in enumerate(names):
        memlet = dace.Memlet.from_array(name, sdfg.arrays[name])
        state.add_edge(state.add_read(name), None, node, input_connector(position), memlet)
    state.add_edge(node, output_connector(0), state.add_write("y"), None, dace.Memlet.from_array("y", sdfg.arrays["y"]))
    ports = tuple(Port(name, name, shape, dtype) for name, shape in zip(names, inputs, strict=True))
    result = (Port("y", "y", output, dtype),)
    nodes = (ModelNode("op", op_type, Coverage.COSTED),)
    return Program("op", Level.CANONICAL, sdfg, ports, result, MappingProxyType({}), nodes)


def check_expansion(
    op_type: str,
    name: str,
    *,
    inputs: Sequence[tuple[int, ...]],
    output: tuple[int, ...],
    reference: Callable[..., Values],
    attributes: Mapping[str, AttributeValue] = NO_ATTRIBUTES,
    dtype: str = "float32",
    seed: int = 0,
) -> CanonicalDag:
    """Check one expansion of a canonical operator and return its canonical DAG.

    * Numbers: the lowered operator, compiled and run on random data, gives what ``reference`` gives.
    * Volumes and invariants: the canonical DAG can be extracted and is verified; every computational node is canonical.
    * Schedules for several numbers of processing elements are accepted by the independent checker.
    * Determinism: all of it a second time gives the same bytes.

    Args:
        op_type: canonical operator type, such as ``MatMul``.
        name: of the expansion.
        inputs: shapes of the operands.
        output: shape of the result.
        reference: called with the operands as arrays; returns the result.
        attributes: of the operator.
        dtype: numpy name, of all arrays.
        seed: of the random data.

    Raises:
        AssertionError: the numbers differ, or two runs do.
        DfcompileError: the expansion does not exist, or a stage rejects what it built.
    """
    program = canonical_program(op_type, inputs, output, attributes, dtype)
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
