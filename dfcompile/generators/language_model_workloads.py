"""Decoder layers of a language model: forward pass, decoding of one token with caches, training [ko24, section 6]."""

from enum import StrEnum, unique
from typing import assert_never

from msgspec import Struct

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError, nearest
from dfcompile.generators import workload_kernels as design

# Source and target of each connection: positions, from 1 on, in the order of `Layer.forward`.
FORWARD_EDGES = (
    *((1, 2), (2, 3), (2, 4), (2, 5), (3, 6), (4, 6), (6, 7), (7, 8), (5, 9), (8, 9), (9, 10), (10, 11), (11, 12)),
    *((1, 12), (12, 13), (13, 14), (14, 15), (15, 16), (16, 17), (17, 18), (12, 18)),
)

LAYER_KERNELS = 18


def llm_forward(
    *, hidden: int, seq: int, num_head: int, head_dim: int, word: int, mlp_dim: int | None = None, layers: int = 1
) -> schema.Dataflow_Graph:
    """Return 18 kernels and 21 connections per layer; the last kernel of a layer feeds the first of the next.

    Activations are ``[hidden, seq]``, scores ``[num_head, seq, seq]``. Names have the suffix ``_layer_1`` … if there
    are several layers.

    Args:
        hidden: hidden dimension, num_head times head_dim.
        seq: sequence length.
        num_head: heads of attention.
        head_dim: dimension of a head.
        word: bytes per element.
        mlp_dim: hidden dimension of the feed-forward network (four times hidden if not given).
        layers: layers in the graph.

    Raises:
        UserError: an argument is not positive, or heads do not make up the hidden dimension.
    """
    workload = "llm-fwd" if layers == 1 else "llm-multilayer"
    layer = Layer.of(workload, hidden, num_head, head_dim, word, mlp_dim, seq=seq, layers=layers)
    design.check_kernels(workload, layers * LAYER_KERNELS)
    kernels: list[schema.Kernel] = []
    edges: list[tuple[int, int]] = []
    for number in range(1, layers + 1):
        first = len(kernels)
        of_layer = layer.forward(seq)
        for kernel in of_layer if layers > 1 else ():
            kernel.name += f"_layer_{number}"
        kernels += of_layer
        edges += [(first, first + 1)] if first else []
        edges += [(first + source, first + target) for source, target in FORWARD_EDGES]
    return design.graph_of(kernels, edges)


class Layer(Struct, frozen=True):
    """A decoder layer.

    Attributes:
        hidden: hidden dimension, ``num_head * head_dim``.
        num_head: heads of attention.
        head_dim: dimension of a head.
        word: bytes per element.
        mlp: hidden dimension of the feed-forward network.
    """

    hidden: int
    num_head: int
    head_dim: int
    word: int
    mlp: int

    @staticmethod
    def of(
        workload: str, hidden: int, num_head: int, head_dim: int, word: int, mlp_dim: int | None, **others: int
    ) -> "Layer":
        """Check the arguments of a workload and return its layer; ``mlp_dim`` defaults to four times ``hidden``.

        Raises:
            UserError: an argument, or one of the others, is not positive, or heads do not make up the hidden dimension.
        """
        layer = Layer(hidden, num_head, head_dim, word, 4 * hidden if mlp_dim is None else mlp_dim)
        sizes = {"hidden": hidden, "num_head": num_head, "head_dim": head_dim, "word": word}
        design.check_positive(workload, **sizes, mlp_dim=layer.mlp, **others)
        if num_head * head_dim != hidden:
            heads = f"num_head {num_head} x head_dim {head_dim} = {num_head * head_dim}"
            raise UserError(f"{workload}: found {heads} against hidden {hidden}")
        return layer

    def activation(self, name: str, seq: int) -> schema.Kernel:
        """Return an elementwise kernel on activations ``[hidden, seq]``."""
        return design.elementwise(name, 1, self.hidden, seq, self.word)

    def scores(self, name: str, rows: int, tokens: int) -> schema.Kernel:
        """Return an elementwise kernel on attention scores ``[num_head, rows, tokens]``."""
        return design.elementwise(name, self.num_head, rows, tokens, self.word)

    def attention(self, name: str, m: int, k: int, n: int, *, is_swapped: bool = False) -> schema.Kernel:
        """Return a product ``[m, k] x [k, n]`` of two activations per head; swapped: input 1 is the right factor."""
        return design.gemm(name, self.num_head, m, k, n, self.word, is_swapped=is_swapped)

    def weighted(self, name: str, m: int, k: int, seq: int) -> schema.Kernel:
        """Return the product of a weight ``[m, k]`` and activations ``[k, seq]``."""
        return design.weighted_gemm(name, 1, m, k, seq, self.word)

    def per_head(self, name: str, seq: int) -> schema.Kernel:
        """Return the product with a weight that gives the queries, keys or values of all heads."""
        return design.weighted_gemm(name, self.num_head, self.head_dim, self.hidden, seq, self.word)

    def forward(self, seq: int) -> tuple[schema.Kernel, ...]:
        """Return the kernels of one layer in the order of `FORWARD_EDGES`."""
        hidden, mlp = self.hidden, self.mlp
        return (
            self.activation("Add_Prev_Layer", seq),
            self.activation("LayerNorm_1", seq),
            *(self.per_head(name, seq) for name in "QKV"),
            self.attention("MHA_GEMM_1", seq, self.head_dim, seq),
            self.scores("SOFTMAX", seq, seq),
            self.scores("DropOut_1", seq, seq),
            self.attention("MHA_GEMM_2", self.head_dim, seq, seq),
            self.weighted("PROJ_GEMM", hidden, hidden, seq),
            self.activation("DropOut_2", seq),
            design.elementwise_of_two("Add_1", 1, hidden, seq, self.word),
            self.activation("LayerNorm_2", seq),
            self.weighted("FFN0", mlp, hidden, seq),
            design.elementwise("GeLU", 1, mlp, seq, self.word),
            self.weighted("FFN1", hidden, mlp, seq),
            self.activation("DropOut_3", seq),
            design.elementwise_of_two("Add_2", 1, hidden, seq, self.word),
        )


DECODE_EDGES = (
    *((1, 2), (2, 3), (2, 4), (2, 5), (4, 6), (5, 7), (3, 8), (6, 8), (8, 9), (9, 10), (10, 11), (7, 11), (11, 12)),
    *((12, 13), (13, 14), (14, 15), (1, 14), (15, 16), (16, 17), (17, 18), (18, 19), (19, 20), (14, 20)),
)
FROM_CACHES = ((6, 8), (7, 11))  # edges from a cache to attention


@unique
class Cache(StrEnum):
    """Where the cached keys and values of a layer are while it runs."""

    RESIDENT = "resident"  # in SRAM: attention sees a window that includes the new token
    STREAMED = "streamed"  # tensors between kernels: attention sees the window and the new token

    @property
    def is_resident(self) -> bool:
        """Whether it takes SRAM, and no tensor passes between kernels."""
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

    Every token reads all weights and caches: a chip's share of them is extra DRAM traffic.

    Args:
        hidden: hidden dimension, num_head times head_dim.
        num_head: heads of attention.
        head_dim: dimension of a head.
        word: bytes per element.
        window: tokens in the cache.
        tensor_parallel: chips over which weights and caches are spread.
        mlp_dim: hidden dimension of the feed-forward network (four times hidden if not given).
        cache: resident: caches stay in SRAM and the window includes the new token; streamed: they are tensors between
            kernels and the new token comes on top.

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
            weight.memory_size = design.share(weight.outer * weight.M * weight.K * word, tensor_parallel)
    cache_bytes = design.share(hidden * window * word, tensor_parallel)
    caches = []
    for name in ("K_cache", "V_cache"):
        # A cache is a kernel that reads the new key or value and writes all of them; it runs on the systolic units.
        output_bytes, new_bytes = hidden * tokens * word, hidden * word
        extents, variant = (num_head, head_dim, tokens), KernelVariant.ELEMENTWISE_INPUT1
        cached = design.kernel_of(name, variant, extents, output_bytes, input_tensor_size=new_bytes)
        cached.type = schema.SYSTOLIC
        cache_message = cached.elementwise_input1
        cache_message.memory_size = cache_bytes
        cache_message.sram_extra = cache_message.dram_extra = cache_bytes * is_resident
        caches.append(cached)
    after_values = 5  # kernels before the caches: addition, normalisation, queries, keys, values
    graph = design.graph_of((*forward[:after_values], *caches, *forward[after_values:]), DECODE_EDGES)
    for connection in graph.connections:
        connection.zero_out = is_resident and (connection.startIdx, connection.endIdx) in FROM_CACHES
    return graph


# Kernels 19 to 35 are gradients of activations, 36 to 41 of weights; both read activations of the forward pass.
BACKWARD_EDGES = (
    *((19, 20), (20, 21), (21, 22), (22, 23), (23, 24), (24, 25), (25, 26), (26, 27), (5, 27), (26, 28), (8, 28)),
    *((27, 30), (28, 29), (30, 31), (31, 32), (31, 33), (4, 32), (3, 33), (32, 34), (33, 35)),
    *((20, 36), (15, 36), (22, 37), (13, 37), (25, 38), (9, 38), (28, 39), (2, 39), (33, 40), (2, 40), (32, 41)),
    (2, 41),
)


def llm_training(
    *, hidden: int, seq: int, num_head: int, head_dim: int, word: int, mlp_dim: int | None = None
) -> schema.Dataflow_Graph:
    """Return 41 kernels and 53 connections: 18 of the forward pass, gradients of activations (17) and of weights (6).

    Args:
        hidden: hidden dimension, num_head times head_dim.
        seq: sequence length.
        num_head: heads of attention.
        head_dim: dimension of a head.
        word: bytes per element.
        mlp_dim: hidden dimension of the feed-forward network (four times hidden if not given).

    Raises:
        UserError: an argument is not positive, or heads do not make up the hidden dimension.
    """
    layer = Layer.of("llm-fwdbwd", hidden, num_head, head_dim, word, mlp_dim, seq=seq)
    backward = (*_activation_gradients(layer, seq), *_weight_gradients(layer, seq))
    for kernel in backward:
        kernel.fwd_bwd = schema.BWD
    return design.graph_of((*layer.forward(seq), *backward), (*FORWARD_EDGES, *BACKWARD_EDGES))


def _activation_gradients(layer: Layer, seq: int) -> tuple[schema.Kernel, ...]:
    hidden, head_dim, mlp = layer.hidden, layer.head_dim, layer.mlp
    return (
        layer.activation("Loss_bwd", seq),
        layer.activation("DropOut_3_bwd", seq),
        layer.weighted("FFN1_bwd", mlp, hidden, seq),
        design.elementwise("GeLU_bwd", 1, mlp, seq, layer.word),
        layer.weighted("FFN0_bwd", hidden, mlp, seq),
        layer.activation("LayerNorm_2_bwd", seq),
        layer.activation("DropOut_2_bwd", seq),
        layer.weighted("PROJ_GEMM_bwd", hidden, hidden, seq),
        layer.attention("MHA_GEMM_2_bwd1", seq, head_dim, seq),
        layer.attention("MHA_GEMM_2_bwd2", head_dim, seq, seq),
        layer.weighted("V_bwd", hidden, hidden, seq),
        layer.scores("DropOut_1_bwd", seq, seq),
        layer.scores("SOFTMAX_bwd", seq, seq),
        layer.attention("MHA_GEMM_1_bwd1", head_dim, seq, seq, is_swapped=True),
        layer.attention("MHA_GEMM_1_bwd2", head_dim, seq, seq, is_swapped=True),
        layer.per_head("Q_bwd", seq),
        layer.per_head("K_bwd", seq),
    )


def _weight_gradients(layer: Layer, seq: int) -> tuple[schema.Kernel, ...]:
    """Return, per weight, the product of an activation ``[m, seq]`` and a gradient ``[seq, n]``, which is input 1."""
    hidden, mlp, word = layer.hidden, layer.mlp, layer.word
    sides = {"FFN1": (mlp, hidden), "FFN0": (hidden, mlp)}
    products = []
    for name in ("FFN1", "FFN0", "PROJ_GEMM", "V", "K", "Q"):
        m, n = sides.get(name, (hidden, hidden))
        product = design.gemm(f"{name}_bwd_weight_update", 1, m, seq, n, word, is_swapped=True)
        product.gemm_input1_input2.tiling = schema.K_TILING
        products.append(design.set_exchange(product, schema.ALL_REDUCE_PERIODIC, m * n * word))
    return tuple(products)
