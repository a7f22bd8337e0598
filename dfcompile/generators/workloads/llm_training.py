"""Forward and backward pass of one decoder layer of a language model [ko24, section 6]."""

from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.generators.workloads.arguments import check_heads, check_positive
from dfcompile.generators.workloads.kernels import elementwise, exchanging, gemm, graph_of, weighted_gemm
from dfcompile.generators.workloads.llm_forward import FORWARD_EDGES, forward_kernels

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
    workload = "llm-fwdbwd"
    mlp = 4 * hidden if mlp_dim is None else mlp_dim
    check_positive(workload, hidden=hidden, seq=seq, num_head=num_head, head_dim=head_dim, word=word, mlp_dim=mlp)
    check_heads(workload, hidden, num_head, head_dim)
    backward = (
        *_activation_gradients(hidden, seq, num_head, head_dim, word, mlp),
        *_weight_gradients(hidden, seq, word, mlp),
    )
    for kernel in backward:
        kernel.fwd_bwd = schema.BWD
    kernels = (*forward_kernels(hidden, seq, num_head, head_dim, word, mlp), *backward)
    return graph_of(kernels, (*FORWARD_EDGES, *BACKWARD_EDGES))


def _activation_gradients(
    hidden: int, seq: int, num_head: int, head_dim: int, word: int, mlp: int
) -> tuple[schema.Kernel, ...]:
    def activation(name: str) -> schema.Kernel:
        return elementwise(name, 1, hidden, seq, word)

    return (
        activation("Loss_bwd"),
        activation("DropOut_3_bwd"),
        weighted_gemm("FFN1_bwd", 1, mlp, hidden, seq, word),
        elementwise("GeLU_bwd", 1, mlp, seq, word),
        weighted_gemm("FFN0_bwd", 1, hidden, mlp, seq, word),
        activation("LayerNorm_2_bwd"),
        activation("DropOut_2_bwd"),
        weighted_gemm("PROJ_GEMM_bwd", 1, hidden, hidden, seq, word),
        gemm("MHA_GEMM_2_bwd1", num_head, seq, head_dim, seq, word),
        gemm("MHA_GEMM_2_bwd2", num_head, head_dim, seq, seq, word),
        weighted_gemm("V_bwd", 1, hidden, hidden, seq, word),
        elementwise("DropOut_1_bwd", num_head, seq, seq, word),
        elementwise("SOFTMAX_bwd", num_head, seq, seq, word),
        gemm("MHA_GEMM_1_bwd1", num_head, head_dim, seq, seq, word, is_swapped=True),
        gemm("MHA_GEMM_1_bwd2", num_head, head_dim, seq, seq, word, is_swapped=True),
        weighted_gemm("Q_bwd", num_head, head_dim, hidden, seq, word),
        weighted_gemm("K_bwd", num_head, head_dim, hidden, seq, word),
    )


def _weight_gradients(hidden: int, seq: int, word: int, mlp: int) -> tuple[schema.Kernel, ...]:
    """Products over the sequence of an activation and, as input 1, the gradient: the right operand."""
    sides = {"FFN1": (mlp, hidden), "FFN0": (hidden, mlp)}
    products = []
    for name in ("FFN1", "FFN0", "PROJ_GEMM", "V", "K", "Q"):
        m, n = sides.get(name, (hidden, hidden))
        product = gemm(f"{name}_bwd_weight_update", 1, m, seq, n, word, is_swapped=True)
        product.gemm_input1_input2.tiling = schema.K_TILING
        products.append(exchanging(product, schema.ALL_REDUCE_PERIODIC, m * n * word))
    return tuple(products)
