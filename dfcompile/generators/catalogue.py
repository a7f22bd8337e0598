"""The graphs that ``dfcompile generate`` makes: canonical DAGs, single operators, workloads of DFModel."""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from inspect import Signature, getdoc, signature
from typing import Final, Generic, TypeAlias, TypeVar

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, dag_to_json, format_dag
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError, nearest
from dfcompile.generators import other_workloads
from dfcompile.generators.canonical_dags import chain, cholesky, fft, fork_join, gaussian
from dfcompile.generators.language_model_workloads import llm_decode, llm_forward, llm_training
from dfcompile.generators.single_operators import convolution, matmul
from dfcompile.generators.workload_kernels import design_text
from dfcompile.records import replace

TEXT: Final = "text"
JSON: Final = "json"

Argument = int | str
Graph = TypeVar("Graph")


class Setting(Struct, frozen=True):
    """An argument of a generator: a whole number, or a word.

    Attributes:
        name: as the function has it; on the command line with ``-`` for ``_``.
        text: help.
        is_required: whether it has to be given.
        default: its value if none is given; ``None``: the generator chooses one.
        choices: the words to choose from, if any.
    """

    name: str
    text: str
    is_required: bool = True
    default: Argument | None = None
    choices: tuple[str, ...] = ()

    @property
    def is_word(self) -> bool:
        """Whether its value is a word, not a whole number."""
        return bool(self.choices) or isinstance(self.default, str)

    def check(self, generator: str, value: Argument) -> None:
        """Check a value that a user gives.

        Raises:
            UserError: it is no integer, or none of the words to choose from.
        """
        if not self.is_word:
            if not isinstance(value, int) or isinstance(value, bool):
                raise UserError(f"{generator}: found {self.name} {value!r} against an integer")
        elif self.choices and value not in self.choices:
            hint = nearest(str(value), self.choices)
            raise UserError(f"{generator}: found {self.name} {value!r} against a known one{hint}")


class Generator(Struct, Generic[Graph], frozen=True):
    """A named function that makes a graph, and the formats in which the graph can be written.

    Attributes:
        name: on the command line.
        text: help, one line.
        makes: kind of the graph, for the help.
        settings: arguments of the function.
        function: returns the graph.
        writers: by name of the format, functions that write the graph as text or bytes; the first is the default.
    """

    name: str
    text: str
    makes: str
    settings: tuple[Setting, ...]
    function: Callable[..., Graph]
    writers: Mapping[str, Callable[[Graph], str | bytes]]

    @property
    def formats(self) -> tuple[str, ...]:
        """Names of the formats."""
        return tuple(self.writers)

    def generate(self, arguments: Mapping[str, Argument]) -> Graph:
        """Return the graph for these arguments; missing ones have their defaults.

        Raises:
            UserError: an argument is unknown, missing without a default, or refused by the generator.
        """
        known = {setting.name: setting for setting in self.settings}
        for name, value in arguments.items():
            if name not in known:
                raise UserError(f"{self.name}: no argument {name!r}{nearest(name, known)}")
            known[name].check(self.name, value)
        for setting in self.settings:
            if setting.is_required and setting.name not in arguments:
                raise UserError(f"{self.name}: found no {setting.name} against a value for it ({setting.text})")
        return self.function(**arguments)

    def write(self, arguments: Mapping[str, Argument], format_name: str) -> str | bytes:
        """Return the graph for these arguments, written in one of `formats`.

        Raises:
            UserError: as `generate`.
        """
        return self.writers[format_name](self.generate(arguments))


AnyGenerator: TypeAlias = Generator[CanonicalDag] | Generator[schema.Dataflow_Graph]


def find_generator(name: str) -> AnyGenerator:
    """Return the generator that has this name on the command line.

    Raises:
        UserError: none has.
    """
    if name not in GENERATORS:
        raise UserError(f"generator {name!r}: unknown{nearest(name, GENERATORS)}")
    return GENERATORS[name]


_ARGUMENT = re.compile(r"^    (\w+): (.+(?:\n {8}.+)*)\.$", re.MULTILINE)  # in a docstring: name, text
_DAG_WRITERS: Mapping[str, Callable[[CanonicalDag], str | bytes]]
_DAG_WRITERS = {TEXT: format_dag, JSON: dag_to_json}


def _settings(function: Callable[..., object]) -> Iterator[Setting]:
    """Yield the arguments of a generator, from its signature and the texts of its docstring.

    The value of an argument is a word if its default is a member of an enumeration.
    """
    texts = {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(getdoc(function) or "")}
    for name, parameter in signature(function).parameters.items():
        required = parameter.default is Signature.empty
        default = None if required else parameter.default
        choices = tuple(word.value for word in type(default)) if isinstance(default, StrEnum) else ()
        yield Setting(name, texts.get(name, name), required, str(default) if choices else default, choices)


def _dag(name: str, text: str, function: Callable[..., CanonicalDag]) -> Generator[CanonicalDag]:
    return Generator(name, text, "canonical DAG", tuple(_settings(function)), function, _DAG_WRITERS)


def _workload(
    name: str, text: str, function: Callable[..., schema.Dataflow_Graph], settings: tuple[Setting, ...] = ()
) -> Generator[schema.Dataflow_Graph]:
    settings = settings or tuple(_settings(function))
    return Generator(name, text, "DFModel workload", settings, function, {TEXT: design_text})


_DAGS = (
    _dag("chain", "tasks in a row", chain),
    _dag("fft", "fast Fourier transform: a tree, then butterflies", fft),
    _dag("gaussian", "Gaussian elimination", gaussian),
    _dag("cholesky", "tiled Cholesky factorisation", cholesky),
    _dag("fork-join", "two stages of parallel tasks, each joined by one", fork_join),
    _dag("matmul", "matrix product A[n, k] @ B[k, m] by expansion", matmul),
    _dag("convolution", "convolution of a square image by expansion", convolution),
)
*_LAYER_SETTINGS, _LAYER_COUNT = _settings(llm_forward)
_WORKLOADS = (
    _workload("llm-fwd", "forward pass of one layer of a language model", llm_forward, (*_LAYER_SETTINGS,)),
    _workload(
        "llm-multilayer",
        "forward pass of several layers of a language model in one graph",
        llm_forward,
        (*_LAYER_SETTINGS, replace(_LAYER_COUNT, is_required=True, default=None)),
    ),
    _workload("llm-fwdbwd", "forward and backward pass of one layer of a language model", llm_training),
    _workload(
        "llm-decode",
        "decoding of one token by one layer of a language model, with a cache of keys and values",
        llm_decode,
    ),
    _workload("dlrm", "training step of a deep learning recommendation model", other_workloads.dlrm_training),
    _workload("hpl", "high-performance Linpack: LU factorisation by block columns", other_workloads.hpl),
    _workload("fft", "fast Fourier transform in two steps", other_workloads.fft),
    _workload("mamba-scan", "Mamba layer with a parallel scan over the sequence", other_workloads.mamba_scan),
)
WORKLOADS: Mapping[str, Generator[schema.Dataflow_Graph]] = {generator.name: generator for generator in _WORKLOADS}
_DAG_NAMES = frozenset(generator.name for generator in _DAGS)
_RENAMED = (replace(work, name=f"{work.name}-workload") if work.name in _DAG_NAMES else work for work in _WORKLOADS)
_ALL: tuple[AnyGenerator, ...] = (*_DAGS, *_RENAMED)
GENERATORS: Mapping[str, AnyGenerator] = {generator.name: generator for generator in _ALL}
