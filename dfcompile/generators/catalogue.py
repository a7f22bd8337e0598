"""The graphs that ``dfcompile generate`` makes: canonical DAGs, single operators, workloads of DFModel."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, dag_to_json, dag_to_npz, format_dag
from dfcompile.errors import UserError, nearest
from dfcompile.generators.canonical_dags import chain, cholesky, fft, fork_join, gaussian
from dfcompile.generators.settings import Argument, Setting
from dfcompile.generators.workloads import WORKLOADS, WorkloadGenerator, design_text
from dfcompile.options import Volumes

TEXT: Final = "text"
JSON: Final = "json"
NPZ: Final = "npz"


class Generator(Struct, frozen=True):
    """A named way to make a graph and write it down.

    Attributes:
        name: on the command line.
        text: help, one line.
        makes: what kind of graph it is.
        settings: its arguments.
        formats: the forms that ``write`` knows; the first is the usual one.
        write: gives the graph as a text or as bytes, of arguments and one of the forms.
    """

    name: str
    text: str
    makes: str
    settings: tuple[Setting, ...]
    formats: tuple[str, ...]
    write: Callable[[Mapping[str, Argument], str], str | bytes]


def find_generator(name: str) -> Generator:
    """Return the generator of a name.

    Raises:
        UserError: there is none.
    """
    if name not in GENERATORS:
        raise UserError(f"generator {name!r}: unknown{nearest(name, GENERATORS)}")
    return GENERATORS[name]


def _optional(name: str, text: str, default: Argument | None = None) -> Setting:
    return Setting(name, text, is_required=False, default=default)


_WALK = (
    _optional("volume", "elements on the first edges", 2048),
    _optional("seed", "of random volumes; without one all tasks are elementwise"),
)
_EXPANDED = (
    _optional("expansion", "of MatMul, see `dfcompile expansions`", "mv"),
    Setting("volumes", "of edges between tasks: own shares or whole arrays", is_required=False, default="exact",
            choices=tuple(value.value for value in Volumes)),
)  # fmt: skip


def _dag(name: str, text: str, function: Callable[..., CanonicalDag], *settings: Setting, **names: str) -> Generator:
    """Make a generator of a function that returns a canonical DAG; ``names``: what its arguments are called there."""

    def write(arguments: Mapping[str, Argument], form: str) -> str | bytes:
        return _FORMS[form](function(**{names.get(key, key): value for key, value in arguments.items()}))

    return Generator(name, text, "canonical DAG", settings, tuple(_FORMS), write)


_FORMS: Mapping[str, Callable[[CanonicalDag], str | bytes]] = MappingProxyType(
    {TEXT: format_dag, JSON: dag_to_json, NPZ: dag_to_npz}
)


def _operator(name: str) -> Callable[..., CanonicalDag]:
    """Return the function that makes the DAG of a single operator; only when it is called, dace is imported."""

    def make(**arguments: object) -> CanonicalDag:
        from dfcompile.generators import single_operators

        dag: CanonicalDag = getattr(single_operators, name)(**arguments)
        return dag

    return make


def _workload(generator: WorkloadGenerator) -> Generator:
    def write(arguments: Mapping[str, Argument], _form: str) -> str:
        return design_text(generator.generate(arguments))

    name = f"{generator.name}-workload" if generator.name in _DAGS else generator.name
    return Generator(name, generator.text, "DFModel workload", generator.parameters, (TEXT,), write)


_DAGS: Mapping[str, Generator] = MappingProxyType(
    {
        generator.name: generator
        for generator in (
            _dag("chain", "tasks in a row", chain, Setting("size", "number of tasks"), *_WALK),
            _dag(
                "fft", "fast Fourier transform: a tree, then butterflies", fft,
                Setting("size", "points, a power of two"), *_WALK, size="points",
            ),
            _dag(
                "gaussian", "Gaussian elimination", gaussian,
                Setting("size", "rows and columns of the matrix"), *_WALK,
            ),
            _dag(
                "cholesky", "tiled Cholesky factorisation", cholesky,
                Setting("size", "rows and columns of tiles"), *_WALK, size="tiles",
            ),
            _dag(
                "fork-join", "two stages of parallel tasks, each joined by one", fork_join,
                Setting("first", "tasks of the first stage"), Setting("second", "tasks of the second stage"), *_WALK,
            ),
            _dag(
                "matmul", "matrix product A[n, k] @ B[k, m] by expansion", _operator("matmul"),
                Setting("n", "rows of A"), Setting("k", "columns of A"), Setting("m", "columns of B"), *_EXPANDED,
            ),
            _dag(
                "convolution", "convolution of a square image by expansion", _operator("convolution"),
                Setting("size", "rows and columns of the image"), Setting("kernel", "rows and columns of a filter"),
                Setting("filters", "number of filters"), _optional("channels", "of image and filters", 1),
                _optional("stride", "between windows", 1), _optional("padding", "rows and columns around the image", 0),
                *_EXPANDED,
            ),
        )
    }
)  # fmt: skip

GENERATORS: Mapping[str, Generator] = MappingProxyType(
    {**_DAGS, **{found.name: found for found in map(_workload, WORKLOADS.values())}}
)
