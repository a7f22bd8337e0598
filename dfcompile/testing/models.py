"""Models, from ONNX's text form, and canonical DAGs for tests of plug-ins, and checks of any DAG."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag import CanonicalDag, format_dag
from dfcompile.errors import UserError
from dfcompile.frontend import Model, ReadOptions
from dfcompile.generators.canonical_dags import chain, cholesky, fft, fork_join, gaussian
from dfcompile.scheduler import ScheduleOptions, check, schedule

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
