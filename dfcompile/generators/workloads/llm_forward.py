"""Forward pass of decoder layers of a language model [ko24, section 6]."""

from msgspec import Struct

from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError
from dfcompile.generators.workloads.arguments import check_kernels, check_positive
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
    layer = Layer.of(workload, hidden, num_head, head_dim, word, mlp_dim, seq=seq, layers=layers)
    check_kernels(workload, layers * LAYER_KERNELS)
    kernels: list[schema.Kernel] = []
    edges: list[tuple[int, int]] = []
    for number in range(1, layers + 1):
        first = len(kernels)
        own = layer.forward(seq)
        for kernel in own if layers > 1 else ():
            kernel.name += f"_layer_{number}"
        kernels += own
        edges += [(first, first + 1)] if first else []
        edges += [(first + source, first + target) for source, target in FORWARD_EDGES]
    return graph_of(kernels, edges)


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
        """Return the layer of a workload's arguments; four times `hidden` is the default of `mlp_dim`.

        Raises:
            UserError: an argument, or one of the others, is not positive, or heads do not make up the hidden dimension.
        """
        layer = Layer(hidden, num_head, head_dim, word, 4 * hidden if mlp_dim is None else mlp_dim)
        sizes = {"hidden": hidden, "num_head": num_head, "head_dim": head_dim, "word": word}
        check_positive(workload, **sizes, mlp_dim=layer.mlp, **others)
        if num_head * head_dim != hidden:
            heads = f"num_head {num_head} x head_dim {head_dim} = {num_head * head_dim}"
            raise UserError(f"{workload}: found {heads} against hidden {hidden}")
        return layer

    def activation(self, name: str, seq: int) -> schema.Kernel:
        """Return an elementwise kernel of the hidden dimension."""
        return elementwise(name, 1, self.hidden, seq, self.word)

    def scores(self, name: str, rows: int, tokens: int) -> schema.Kernel:
        """Return an elementwise kernel of the scores of all heads."""
        return elementwise(name, self.num_head, rows, tokens, self.word)

    def attention(self, name: str, m: int, k: int, n: int, *, is_swapped: bool = False) -> schema.Kernel:
        """Return a product of activations for each head."""
        return gemm(name, self.num_head, m, k, n, self.word, is_swapped=is_swapped)

    def weighted(self, name: str, m: int, k: int, seq: int) -> schema.Kernel:
        """Return a product with one weight."""
        return weighted_gemm(name, 1, m, k, seq, self.word)

    def per_head(self, name: str, seq: int) -> schema.Kernel:
        """Return the product with a weight that makes queries, keys or values of all heads."""
        return weighted_gemm(name, self.num_head, self.head_dim, self.hidden, seq, self.word)

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
            elementwise_of_two("Add_1", 1, hidden, seq, self.word),
            self.activation("LayerNorm_2", seq),
            self.weighted("FFN0", mlp, hidden, seq),
            elementwise("GeLU", 1, mlp, seq, self.word),
            self.weighted("FFN1", hidden, mlp, seq),
            self.activation("DropOut_3", seq),
            elementwise_of_two("Add_2", 1, hidden, seq, self.word),
        )
