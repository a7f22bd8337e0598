"""Models, from ONNX's text form, and canonical DAGs for tests of plug-ins, and checks of any DAG and partitioner.

Checks for front ends: a file becomes a model that can be lowered, run and reported about, twice the same.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag import CanonicalDag, format_dag
from dfcompile.canonical_dag.extraction.extract import extract
from dfcompile.errors import PluginError, UserError
from dfcompile.frontend import FileKind, Level, Model, ReadOptions
from dfcompile.generators.canonical_dags import chain, cholesky, fft, fork_join, gaussian
from dfcompile.lowering import lower_to_canonical, lower_to_maps, registered_expansions
from dfcompile.lowering.execution.verification import verified_deviation
from dfcompile.lowering.program_nodes import operator_nodes
from dfcompile.lowering.program_text import format_program
from dfcompile.options import Timing
from dfcompile.records import replace
from dfcompile.scheduler import (
    Partitioner,
    ScheduleOptions,
    check,
    lower_bound_cycles,
    registered_partitioners,
    schedule,
)
from dfcompile.scheduler.blocks import Blocks, check_blocks

PES = (1, 3, 64)
PARTITIONS = ("sb-rlx", "sb-lts")


def check_dag(dag: CanonicalDag, again: CanonicalDag, maker: str) -> None:
    """Check that a canonical DAG is the same a second time, and that the independent checker accepts schedules of it.

    Raises:
        AssertionError: the second one is another.
        VerificationError: a schedule is not accepted.
    """
    assert format_dag(dag) == format_dag(again), f"{maker}: two runs give two canonical DAGs"
    for pes in PES:
        for partition in PARTITIONS:
            check(dag, schedule(dag, ScheduleOptions(pes=pes, partition=partition)))


FIRST_VOLUME = 64  # elements on the first edges
SEEDS = 3


def canonical_dags(seeds: int = SEEDS) -> Iterator[CanonicalDag]:
    """Yield small canonical DAGs: chains, trees, forks and joins, of equal volumes and of volumes at random.

    Args:
        seeds: how many times each is drawn with other volumes.
    """
    for seed in (None, *range(seeds)):
        yield chain(1, FIRST_VOLUME, seed)
        yield chain(9, FIRST_VOLUME, seed)
        yield fft(8, FIRST_VOLUME, seed)
        yield gaussian(5, FIRST_VOLUME, seed)
        yield cholesky(4, FIRST_VOLUME, seed)
        yield fork_join(3, 5, FIRST_VOLUME, seed)


Values = npt.NDArray[np.generic]
NO_PARAMETERS: Mapping[str, Values] = MappingProxyType({})
OPSET = 18


def model_of_text(graph: str, parameters: Mapping[str, Values] = NO_PARAMETERS) -> Model:
    """Return a model such as ``g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }``.

    Args:
        graph: in ONNX's text form, operators of set 18.
        parameters: values of constant operands by name.

    Raises:
        UserError: the text is no graph, or holds what cannot be compiled.
    """
    import onnx.parser

    from dfcompile.frontend.file_kinds.onnx_file import OnnxReference
    from dfcompile.frontend.onnx_model import program_of

    try:
        proto = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {OPSET}]> {graph}')
    except onnx.parser.ParseError as error:
        raise UserError(f"graph: {' '.join(str(error).split())}") from error
    for name, value in parameters.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return Model(program_of("g", proto, ReadOptions()), OnnxReference(proto))


NO_MODELS = {"an empty file": b"", "no text": b"\xff\xfe\x00\x81", "a few words": b"no model\n", "brackets": b"[[{"}


def check_front_end(kind: FileKind, path: Path, *, seed: int = 0) -> CanonicalDag:
    """Check a kind of model file on one file, and return the canonical DAG of the model in it.

    * The model is a program of level 0 whose nodes are all accounted for; its inputs and outputs are arrays of it.
    * Lowered, compiled and run on random data it gives what the model's reference gives.
    * Reading and lowering it a second time gives the same bytes.
    * What is no model (an empty file, no text, a few words, brackets) is an error that names the file, of whose
      reader nothing else is heard.

    Args:
        kind: to check.
        path: of a file that holds a model.
        seed: of the data.

    Raises:
        AssertionError: saying what was found against what.
        UserError: the file cannot be read or compiled.
    """
    assert path.suffix.lower() == kind.suffix, f"{path}: found {path.suffix!r} against {kind.suffix!r}"
    model, again = (kind.model(path, ReadOptions()) for _ in range(2))
    _check_program(model, path)
    assert format_program(model.program) == format_program(again.program), f"{path}: read twice, found two programs"
    for name, value in model.program.parameters.items():
        same = np.array_equal(value, again.program.parameters[name], equal_nan=value.dtype.kind in "fc")
        assert same, f"{path}: read twice, found two values of parameter {name!r}"
    dag = _lowered_dag(model, seed)
    assert format_dag(dag) == format_dag(_lowered_dag(again, None)), f"{path}: read twice, found two canonical DAGs"
    for what, content in NO_MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            said = _refusal(kind, Path(folder) / f"no_model{kind.suffix}", what, content)
        assert f"no_model{kind.suffix}" in said, f"{what}: found {said!r} against an error that names the file"
    return dag


def _check_program(model: Model, path: Path) -> None:
    program = model.program
    assert program.level is Level.ONNX, f"{path}: found level {program.level} against 0"
    assert program.outputs, f"{path}: found no outputs"
    for port in (*program.inputs, *program.outputs):
        assert port.array in program.sdfg.arrays, f"{path}: port {port.name!r}: no array {port.array!r}"
    for name in program.parameters:
        assert name in program.sdfg.arrays, f"{path}: no array {name!r} of a parameter"
    known = {node.name for node in program.nodes}
    for node in operator_nodes(program):
        assert node.origin in known, f"{path}: operator {node.name!r}: origin {node.origin!r} is no node of the model"


def _lowered_dag(model: Model, seed: int | None) -> CanonicalDag:
    """Return the canonical DAG of a model; with a seed its numbers are verified first."""
    table = registered_expansions()
    maps = lower_to_maps(lower_to_canonical(model.program, table, ()), table, ())
    if seed is not None:
        verified_deviation(model, maps, seed)
    return extract(maps.sdfg, parameters=tuple(maps.parameters))


def _refusal(kind: FileKind, path: Path, what: str, content: bytes) -> str:
    path.write_bytes(content)
    try:
        kind.model(path, ReadOptions())
    except PluginError as error:
        raise AssertionError(f"{what}: found an error of the reader against one of the file: {error}") from error
    except UserError as error:
        return str(error)
    raise AssertionError(f"{what}: found a model")


PARTITIONED_PES = (1, 2, 7, 64)


def check_partitioner(
    partitioner: Partitioner | str, dags: Iterable[CanonicalDag] = (), pes: Iterable[int] = PARTITIONED_PES
) -> None:
    """Check a partitioner on canonical DAGs of the generators, and on others.

    * Invariants: its blocks hold every node once, at most P tasks each, and no edge leads back.
    * Schedules of these blocks, with barriers and without, from mean intervals and element by element, are accepted by
      the independent checker.
    * Bounds: no makespan is below what no schedule can beat.
    * Determinism: a second call gives the same blocks.

    Args:
        partitioner: the value, or its name if it is registered.
        dags: to be taken as well.
        pes: numbers of processing elements P.

    Raises:
        AssertionError: a makespan is below the bound, or two calls differ.
        DfcompileError: there is no such partitioner, it raises, or what it returns is no partition.
    """
    found = registered_partitioners().find(partitioner, "partitioner") if isinstance(partitioner, str) else partitioner
    counts = tuple(pes)
    for dag in (*canonical_dags(), *dags):
        for count in counts:
            for barrier in (True, False):
                blocks, again = (found.blocks(dag, count, barrier=barrier) for _ in range(2))
                check_blocks(dag, blocks, count, overlaps=not barrier and found.overlapping is not None)
                is_same = np.array_equal(blocks.block, again.block) and np.array_equal(blocks.order, again.order)
                assert is_same, f"{found.name}: two calls give two partitions of {dag.name!r} on {count}"
                filled = _filled(blocks, found)
                for timing in Timing:
                    _check_schedule(filled, dag, ScheduleOptions(count, found.name, barrier=barrier, timing=timing))


def _filled(blocks: Blocks, partitioner: Partitioner) -> Partitioner:
    """Return the partitioner with the blocks that it has filled already."""

    def fill(_dag: CanonicalDag, _pes: int) -> Blocks:
        return blocks

    return replace(partitioner, partition=fill, overlapping=None if partitioner.overlapping is None else fill)


def _check_schedule(partitioner: Partitioner, dag: CanonicalDag, options: ScheduleOptions) -> None:
    made = schedule(dag, options, {partitioner.name: partitioner})
    check(dag, made)
    bound = lower_bound_cycles(dag, options.pes)
    where = f"{partitioner.name} of {dag.name!r} on {options.pes}"
    assert made.makespan_cycles >= bound, f"{where}: {made.makespan_cycles} cycles against at least {bound}"
