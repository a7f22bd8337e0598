"""Forward pass of decoder layers of a language model [ko24, section 6]."""

from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.generators.workloads.arguments import check_heads, check_kernels, check_positive
from dfcompile.generators.workloads.kernels import elementwise, elementwise_of_two, gemm, graph_of, weighted_gemm

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
        hidden: hidden dimension, ``num_head * head_dim``.
        seq: sequence length.
        num_head: heads of attention.
        head_dim: dimension of a head.
        word: bytes per element.
        mlp_dim: hidden dimension of the feed-forward network; four times `hidden` if absent.
        layers: how many layers the graph holds.

    Raises:
        UserError: an argument is not positive, or heads do not make up the hidden dimension.
    """
    workload = "llm-fwd" if layers == 1 else "llm-multilayer"
    mlp = 4 * hidden if mlp_dim is None else mlp_dim
    check_positive(
        workload, hidden=hidden, seq=seq, num_head=num_head, head_dim=head_dim, word=word, mlp_dim=mlp, layers=layers
    )
    check_heads(workload, hidden, num_head, head_dim)
    check_kernels(workload, layers * LAYER_KERNELS)
    kernels: list[schema.Kernel] = []
    edges: list[tuple[int, int]] = []
    for number in range(1, layers + 1):
        first = len(kernels)
        layer = forward_kernels(hidden, seq, num_head, head_dim, word, mlp)
        for kernel in layer if layers > 1 else ():
            kernel.name += f"_layer_{number}"
        kernels += layer
        edges += [(first, first + 1)] if first else []
        edges += [(first + source, first + target) for source, target in FORWARD_EDGES]
    return graph_of(kernels, edges)


def forward_kernels(
    hidden: int, seq: int, num_head: int, head_dim: int, word: int, mlp: int
) -> tuple[schema.Kernel, ...]:
    """Return the kernels of one layer in the order of `FORWARD_EDGES`."""

    def activation(name: str) -> schema.Kernel:
        return elementwise(name, 1, hidden, seq, word)

    def scores(name: str) -> schema.Kernel:
        return elementwise(name, num_head, seq, seq, word)

    return (
        activation("Add_Prev_Layer"),
        activation("LayerNorm_1"),
        *(weighted_gemm(name, num_head, head_dim, hidden, seq, word) for name in ("Q", "K", "V")),
        gemm("MHA_GEMM_1", num_head, seq, head_dim, seq, word),
        scores("SOFTMAX"),
        scores("DropOut_1"),
        gemm("MHA_GEMM_2", num_head, head_dim, seq, seq, word),
        weighted_gemm("PROJ_GEMM", 1, hidden, hidden, seq, word),
        activation("DropOut_2"),
        elementwise_of_two("Add_1", 1, hidden, seq, word),
        activation("LayerNorm_2"),
        weighted_gemm("FFN0", 1, mlp, hidden, seq, word),
        elementwise("GeLU", 1, mlp, seq, word),
        weighted_gemm("FFN1", 1, hidden, mlp, seq, word),
        activation("DropOut_3"),
        elementwise_of_two("Add_2", 1, hidden, seq, word),
    )
