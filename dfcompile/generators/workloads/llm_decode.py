"""Decoding of one token by one layer of a language model, with caches of keys and values [ko24, section 6]."""

from enum import StrEnum, unique
from typing import assert_never

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError, nearest
from dfcompile.generators.workloads.arguments import share
from dfcompile.generators.workloads.kernels import graph_of, kernel_of
from dfcompile.generators.workloads.llm_forward import Layer

DECODE_EDGES = (
    *((1, 2), (2, 3), (2, 4), (2, 5), (4, 6), (5, 7), (3, 8), (6, 8), (8, 9), (9, 10), (10, 11), (7, 11), (11, 12)),
    *((12, 13), (13, 14), (14, 15), (1, 14), (15, 16), (16, 17), (17, 18), (18, 19), (19, 20), (14, 20)),
)
FROM_CACHES = ((6, 8), (7, 11))


@unique
class Cache(StrEnum):
    """Where the cached keys and values of a layer are while it runs."""

    RESIDENT = "resident"  # in SRAM: attention sees a window that includes the new token
    STREAMED = "streamed"  # tensors between kernels: attention sees the window and the new token

    @property
    def is_resident(self) -> bool:
        """Whether it takes SRAM and is no tensor."""
        match self:
            case Cache.RESIDENT:
                return True
            case Cache.STREAMED:
                return False
        assert_never(self)


def llm_decode(
    *,
    hidden: int,
    num_head: int,
    head_dim: int,
    word: int,
    window: int,
    tensor_parallel: int,
    mlp_dim: int | None = None,
    cache: str = Cache.RESIDENT,
) -> schema.Dataflow_Graph:
    """Return 20 kernels and 23 connections: those of the forward pass for one token, and the two caches.

    Weights and caches are read from DRAM for each token: a chip's share of them is its extra memory traffic.

    Args:
        hidden: hidden dimension, ``num_head * head_dim``.
        num_head: heads of attention.
        head_dim: dimension of a head.
        word: bytes per element.
        window: tokens in the cache.
        tensor_parallel: chips over which weights and caches are spread.
        mlp_dim: hidden dimension of the feed-forward network; four times `hidden` if absent.
        cache: a value of `Cache`.

    Raises:
        UserError: an argument is not positive, heads do not make up the hidden dimension, or an unknown cache.
    """
    sizes = {"window": window, "tensor_parallel": tensor_parallel}
    layer = Layer.of("llm-decode", hidden, num_head, head_dim, word, mlp_dim, **sizes)
    if cache not in tuple(Cache):
        raise UserError(f"llm-decode: found cache {cache!r} against a known one{nearest(cache, tuple(Cache))}")
    is_resident = Cache(cache).is_resident
    tokens = window if is_resident else window + 1

    kernels = {kernel.name: kernel for kernel in layer.forward(1)}
    kernels["MHA_GEMM_1"] = layer.attention("MHA_GEMM_1", 1, head_dim, tokens)
    kernels["SOFTMAX"] = layer.scores("SOFTMAX", 1, tokens)
    kernels["DropOut_1"] = layer.scores("DropOut_1", 1, tokens)
    kernels["MHA_GEMM_2"] = layer.attention("MHA_GEMM_2", head_dim, tokens, 1)
    forward = list(kernels.values())
    for kernel in forward:
        weight = kernel.gemm_input1_weight
        if kernel.HasField("gemm_input1_weight"):
            weight.memory_size = share(weight.outer * weight.M * weight.K * word, tensor_parallel)
    held = share(hidden * window * word, tensor_parallel)
    caches = []
    for name in ("K_cache", "V_cache"):
        # A new key or value goes in, all of them come out, by way of the systolic units.
        output_bytes, new = hidden * tokens * word, hidden * word
        cached = kernel_of(
            name, KernelVariant.ELEMENTWISE_INPUT1, (num_head, head_dim, tokens), output_bytes, input_tensor_size=new
        )
        cached.type = schema.SYSTOLIC
        cache_message = cached.elementwise_input1
        cache_message.memory_size = held
        cache_message.sram_extra = cache_message.dram_extra = held * is_resident
        caches.append(cached)
    after_values = 5  # the caches follow the products that give queries, keys and values
    graph = graph_of((*forward[:after_values], *caches, *forward[after_values:]), DECODE_EDGES)
    for connection in graph.connections:
        connection.zero_out = is_resident and (connection.startIdx, connection.endIdx) in FROM_CACHES
    return graph
