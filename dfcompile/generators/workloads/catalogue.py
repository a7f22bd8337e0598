"""The table of workloads that can be generated, with what a command line has to ask for."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from inspect import Signature, signature
from types import MappingProxyType

from msgspec import Struct

from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError, nearest
from dfcompile.generators.settings import Argument, Setting
from dfcompile.generators.workloads.dlrm import dlrm_training
from dfcompile.generators.workloads.fft import fft
from dfcompile.generators.workloads.hpl import hpl
from dfcompile.generators.workloads.language_models import llm_decode, llm_forward, llm_training
from dfcompile.generators.workloads.mamba import mamba_scan


class WorkloadGenerator(Struct, frozen=True):
    """A named generator and its parameters."""

    name: str
    text: str
    parameters: tuple[Setting, ...]
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


def _check_argument(workload: str, parameter: Setting, value: Argument) -> None:
    if not parameter.choices:
        if not isinstance(value, int) or isinstance(value, bool):
            raise UserError(f"{workload}: found {parameter.name} {value!r} against an integer")
    elif value not in parameter.choices:
        hint = nearest(str(value), parameter.choices)
        raise UserError(f"{workload}: found {parameter.name} {value!r} against a known one{hint}")


_TEXTS: Mapping[str, str] = MappingProxyType(
    {
        "hidden": "hidden dimension, num_head times head_dim",
        "seq": "sequence length",
        "num_head": "heads of attention",
        "head_dim": "dimension of a head",
        "word": "bytes per element",
        "mlp_dim": "hidden dimension of the feed-forward network (four times hidden if not given)",
        "layers": "layers in the graph",
        "window": "tokens in the cache",
        "tensor_parallel": "chips over which weights and caches are spread",
        "cache": "resident: caches stay in SRAM and the window includes the new token; "
        "streamed: they are tensors between kernels and the new token comes on top",
        "bottom_num_mlp": "layers below the embeddings",
        "top_num_mlp": "layers above the embeddings",
        "pooled_row": "rows read from each table per sample",
        "num_table": "embedding tables",
        "emb_dim": "dimension of an embedding",
        "micro_batch_size": "samples of a chip",
        "num_chip": "chips among which the size of the exchange is divided (1: the whole size)",
        "n": "side of the matrix",
        "b": "side of a block",
        "iterations": "block columns in the graph (all of them if not given)",
        "length": "length of the transform",
        "radix": "radix of a butterfly",
    }
)


def _parameters(function: Callable[..., object], texts: Mapping[str, str]) -> Iterator[Setting]:
    """Yield the parameters of a generator as its signature has them; a word where the default is of an enumeration."""
    for name, given in signature(function).parameters.items():
        required = given.default is Signature.empty
        default = None if required else given.default
        choices = tuple(word.value for word in type(default)) if isinstance(default, StrEnum) else ()
        yield Setting(name, {**_TEXTS, **texts}[name], required, str(default) if choices else default, choices)


def _generator(name: str, text: str, function: Callable[..., schema.Dataflow_Graph], **texts: str) -> WorkloadGenerator:
    """Return a generator; ``texts`` are of parameters that have another meaning than elsewhere."""
    return WorkloadGenerator(name, text, tuple(_parameters(function, texts)), function)


_ONE_LAYER = tuple(parameter for parameter in _parameters(llm_forward, {}) if parameter.name != "layers")
WORKLOADS: Mapping[str, WorkloadGenerator] = MappingProxyType(
    {
        generator.name: generator
        for generator in (
            WorkloadGenerator("llm-fwd", "forward pass of one layer of a language model", _ONE_LAYER, llm_forward),
            WorkloadGenerator(
                "llm-multilayer",
                "forward pass of several layers of a language model in one graph",
                (*_ONE_LAYER, Setting("layers", _TEXTS["layers"])),
                llm_forward,
            ),
            _generator("llm-fwdbwd", "forward and backward pass of one layer of a language model", llm_training),
            _generator(
                "llm-decode",
                "decoding of one token by one layer of a language model, with a cache of keys and values",
                llm_decode,
            ),
            _generator(
                "dlrm",
                "training step of a deep learning recommendation model",
                dlrm_training,
                mlp_dim="dimension of each layer",
            ),
            _generator("hpl", "high-performance Linpack: LU factorisation by block columns", hpl),
            _generator("fft", "fast Fourier transform in two steps", fft),
            _generator(
                "mamba-scan", "Mamba layer with a parallel scan over the sequence", mamba_scan, hidden="channels"
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
