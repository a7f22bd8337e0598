"""The table of workloads that can be generated, with what a command line has to ask for."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from msgspec import Struct

from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError, nearest
from dfcompile.generators.workloads.dlrm import dlrm_training
from dfcompile.generators.workloads.fft import fft
from dfcompile.generators.workloads.hpl import hpl
from dfcompile.generators.workloads.llm_decode import Cache, llm_decode
from dfcompile.generators.workloads.llm_forward import llm_forward
from dfcompile.generators.workloads.llm_training import llm_training
from dfcompile.generators.workloads.mamba import mamba_scan

Argument = int | str


class Parameter(Struct, frozen=True):
    """One argument of a generator: an integer, or one of `choices` if there are any.

    Attributes:
        name: as the function and, with ``-`` for ``_``, the command line have it.
        text: help.
        is_required: whether it has to be given; if not, `default` holds.
        default: None where the function derives it from the others.
        choices: the words to choose from; empty for an integer.
    """

    name: str
    text: str
    is_required: bool = True
    default: Argument | None = None
    choices: tuple[str, ...] = ()


class WorkloadGenerator(Struct, frozen=True):
    """A named generator and its parameters."""

    name: str
    text: str
    parameters: tuple[Parameter, ...]
    function: Callable[..., schema.Dataflow_Graph]

    def generate(self, arguments: Mapping[str, Argument]) -> schema.Dataflow_Graph:
        """Return the graph for these arguments; what is not given has its default.

        Raises:
            UserError: an unknown argument, one that is missing, or one that the generator refuses.
        """
        known = {parameter.name: parameter for parameter in self.parameters}
        for name, value in arguments.items():
            if name not in known:
                raise UserError(f"{self.name}: no argument {name!r}{nearest(name, known)}")
            _check_argument(self.name, known[name], value)
        for parameter in self.parameters:
            if parameter.is_required and parameter.name not in arguments:
                raise UserError(f"{self.name}: found no {parameter.name} against a value for it ({parameter.text})")
        return self.function(**arguments)


def _check_argument(workload: str, parameter: Parameter, value: Argument) -> None:
    if not parameter.choices:
        if not isinstance(value, int) or isinstance(value, bool):
            raise UserError(f"{workload}: found {parameter.name} {value!r} against an integer")
    elif value not in parameter.choices:
        raise UserError(
            f"{workload}: found {parameter.name} {value!r} against a known one{nearest(str(value), parameter.choices)}"
        )


def _optional(name: str, text: str, default: Argument | None = None, choices: tuple[str, ...] = ()) -> Parameter:
    return Parameter(name, text, is_required=False, default=default, choices=choices)


_HIDDEN = Parameter("hidden", "hidden dimension, num_head times head_dim")
_SEQ = Parameter("seq", "sequence length")
_HEADS = (Parameter("num_head", "heads of attention"), Parameter("head_dim", "dimension of a head"))
_WORD = Parameter("word", "bytes per element")
_MLP_DIM = _optional("mlp_dim", "hidden dimension of the feed-forward network (four times hidden if not given)")
_LLM = (_HIDDEN, _SEQ, *_HEADS, _WORD, _MLP_DIM)

WORKLOADS: Mapping[str, WorkloadGenerator] = MappingProxyType(
    {
        generator.name: generator
        for generator in (
            WorkloadGenerator("llm-fwd", "forward pass of one layer of a language model", _LLM, llm_forward),
            WorkloadGenerator(
                "llm-multilayer",
                "forward pass of several layers of a language model in one graph",
                (*_LLM, Parameter("layers", "layers in the graph")),
                llm_forward,
            ),
            WorkloadGenerator(
                "llm-fwdbwd", "forward and backward pass of one layer of a language model", _LLM, llm_training
            ),
            WorkloadGenerator(
                "llm-decode",
                "decoding of one token by one layer of a language model, with a cache of keys and values",
                (
                    _HIDDEN,
                    *_HEADS,
                    _WORD,
                    Parameter("window", "tokens in the cache"),
                    Parameter("tensor_parallel", "chips over which weights and caches are spread"),
                    _MLP_DIM,
                    _optional(
                        "cache",
                        "resident: caches stay in SRAM and the window includes the new token; "
                        "streamed: they are tensors between kernels and the new token comes on top",
                        Cache.RESIDENT.value,
                        tuple(place.value for place in Cache),
                    ),
                ),
                llm_decode,
            ),
            WorkloadGenerator(
                "dlrm",
                "training step of a deep learning recommendation model",
                (
                    Parameter("mlp_dim", "dimension of each layer"),
                    Parameter("bottom_num_mlp", "layers below the embeddings"),
                    Parameter("top_num_mlp", "layers above the embeddings"),
                    Parameter("pooled_row", "rows read from each table per sample"),
                    Parameter("num_table", "embedding tables"),
                    Parameter("emb_dim", "dimension of an embedding"),
                    Parameter("micro_batch_size", "samples of a chip"),
                    _WORD,
                    _optional(
                        "num_chip", "chips among which the size of the exchange is divided (1: the whole size)", 1
                    ),
                ),
                dlrm_training,
            ),
            WorkloadGenerator(
                "hpl",
                "high-performance Linpack: LU factorisation by block columns",
                (
                    Parameter("n", "side of the matrix"),
                    Parameter("b", "side of a block"),
                    _WORD,
                    _optional("iterations", "block columns in the graph (all of them if not given)"),
                ),
                hpl,
            ),
            WorkloadGenerator(
                "fft",
                "fast Fourier transform in two steps",
                (Parameter("length", "length of the transform"), _WORD, _optional("radix", "radix of a butterfly", 2)),
                fft,
            ),
            WorkloadGenerator(
                "mamba-scan",
                "Mamba layer with a parallel scan over the sequence",
                (_SEQ, Parameter("hidden", "channels"), _WORD),
                mamba_scan,
            ),
        )
    }
)


def workload(name: str) -> WorkloadGenerator:
    """Return the generator of that name.

    Raises:
        UserError: there is none.
    """
    if name not in WORKLOADS:
        raise UserError(f"workload {name!r}: unknown{nearest(name, WORKLOADS)}")
    return WORKLOADS[name]
