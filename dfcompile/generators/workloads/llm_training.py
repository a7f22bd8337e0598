"""Forward and backward pass of one decoder layer of a language model [ko24, section 6]."""

from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.generators.workloads.kernels import elementwise, exchanging, gemm, graph_of
from dfcompile.generators.workloads.llm_forward import FORWARD_EDGES, Layer

# Gradients of activations, then of weights; both read activations that the forward pass saved.
BACKWARD_EDGES = (
    *((19, 20), (20, 21), (21, 22), (22, 23), (23, 24), (24, 25), (25, 26), (26, 27), (5, 27), (26, 28), (8, 28)),
    *((27, 30), (28, 29), (30, 31), (31, 32), (31, 33), (4, 32), (3, 33), (32, 34), (33, 35)),
    *((20, 36), (15, 36), (22, 37), (13, 37), (25, 38), (9, 38), (28, 39), (2, 39), (33, 40), (2, 40), (32, 41)),
    (2, 41),
)


def llm_training(
    *, hidden: int, seq: int, num_head: int, head_dim: int, word: int, mlp_dim: int | None = None
) -> schema.Dataflow_Graph:
    """Return 41 kernels and 53 connections: the 18 of the forward pass, 17 that derive by activations, 6 by weights.

    Args:
        hidden: hidden dimension, ``num_head * head_dim``.
        seq: sequence length.
        num_head: heads of attention.
        head_dim: dimension of a head.
        word: bytes per element.
        mlp_dim: hidden dimension of the feed-forward network; four times `hidden` if absent.

    Raises:
        UserError: an argument is not positive, or heads do not make up the hidden dimension.
    """
    layer = Layer.of("llm-fwdbwd", hidden, num_head, head_dim, word, mlp_dim, seq=seq)
    backward = (*_activation_gradients(layer, seq), *_weight_gradients(layer, seq))
    for kernel in backward:
        kernel.fwd_bwd = schema.BWD
    return graph_of((*layer.forward(seq), *backward), (*FORWARD_EDGES, *BACKWARD_EDGES))


def _activation_gradients(layer: Layer, seq: int) -> tuple[schema.Kernel, ...]:
    hidden, head_dim, mlp = layer.hidden, layer.head_dim, layer.mlp
    return (
        layer.activation("Loss_bwd", seq),
        layer.activation("DropOut_3_bwd", seq),
        layer.weighted("FFN1_bwd", mlp, hidden, seq),
        elementwise("GeLU_bwd", 1, mlp, seq, layer.word),
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
    """Products over the sequence of an activation and, as input 1, the gradient: the right operand."""
    hidden, mlp, word = layer.hidden, layer.mlp, layer.word
    sides = {"FFN1": (mlp, hidden), "FFN0": (hidden, mlp)}
    products = []
    for name in ("FFN1", "FFN0", "PROJ_GEMM", "V", "K", "Q"):
        m, n = sides.get(name, (hidden, hidden))
        product = gemm(f"{name}_bwd_weight_update", 1, m, seq, n, word, is_swapped=True)
        product.gemm_input1_input2.tiling = schema.K_TILING
        products.append(exchanging(product, schema.ALL_REDUCE_PERIODIC, m * n * word))
    return tuple(products)
