"""Forward and backward pass of one decoder layer of a language model [ko24, section 6]."""

from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.workload.design import Dim
from dfcompile.generators.workloads.arguments import check_heads, check_positive
from dfcompile.generators.workloads.kernels import elementwise, gemm, weighted_gemm
from dfcompile.generators.workloads.llm_forward import FORWARD_EDGES, forward_kernels
from dfcompile.generators.workloads.workload_graph import (
    Communication,
    Direction,
    WorkloadGraph,
    WorkloadKernel,
    numbered,
)
from dfcompile.records import replace

# Gradients of activations, then of weights; both read activations that the forward pass saved.
BACKWARD_EDGES = (
    *((19, 20), (20, 21), (21, 22), (22, 23), (23, 24), (24, 25), (25, 26), (26, 27), (5, 27), (26, 28), (8, 28)),
    *((27, 30), (28, 29), (30, 31), (31, 32), (31, 33), (4, 32), (3, 33), (32, 34), (33, 35)),
    *((20, 36), (15, 36), (22, 37), (13, 37), (25, 38), (9, 38), (28, 39), (2, 39), (33, 40), (2, 40), (32, 41)),
    (2, 41),
)


def llm_training(
    *, hidden: int, seq: int, num_head: int, head_dim: int, word: int, mlp_dim: int | None = None
) -> WorkloadGraph:
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
    kernels = (
        *forward_kernels(hidden, seq, num_head, head_dim, word, mlp),
        *(replace(kernel, direction=Direction.BACKWARD) for kernel in backward),
    )
    return WorkloadGraph(kernels, numbered((*FORWARD_EDGES, *BACKWARD_EDGES)))


def _activation_gradients(
    hidden: int, seq: int, num_head: int, head_dim: int, word: int, mlp: int
) -> tuple[WorkloadKernel, ...]:
    def activation(name: str) -> WorkloadKernel:
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


def _weight_gradients(hidden: int, seq: int, word: int, mlp: int) -> tuple[WorkloadKernel, ...]:
    """Products over the sequence of an activation and, as input 1, the gradient: the right operand."""
    products = (
        gemm("FFN1_bwd_weight_update", 1, mlp, seq, hidden, word, is_swapped=True),
        gemm("FFN0_bwd_weight_update", 1, hidden, seq, mlp, word, is_swapped=True),
        *(
            gemm(f"{name}_bwd_weight_update", 1, hidden, seq, hidden, word, is_swapped=True)
            for name in ("PROJ_GEMM", "V", "K", "Q")
        ),
    )
    return tuple(
        replace(
            product,
            tiling=Dim.K,
            communication=Communication(Collective.ALL_REDUCE_PERIODIC, product.output_bytes),
        )
        for product in products
    )
