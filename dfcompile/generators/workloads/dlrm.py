"""Training step of a deep learning recommendation model: multilayer perceptrons and embedding tables [ko24]."""

from collections.abc import Callable

from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.generators.workloads.kernels import (
    check_kernels,
    check_positive,
    exchanging,
    gemm,
    graph_of,
    require_sizes,
    share,
    weighted_gemm,
)


def dlrm_training(
    *,
    mlp_dim: int,
    bottom_num_mlp: int,
    top_num_mlp: int,
    pooled_row: int,
    num_table: int,
    emb_dim: int,
    micro_batch_size: int,
    word: int,
    num_chip: int = 1,
) -> schema.Dataflow_Graph:
    """Return ``3 n`` kernels for ``n`` layers below and above the embeddings: forward, backward, weight updates.

    The last layer below reads ``num_table * pooled_row`` rows of embeddings per sample and exchanges them among all
    chips, and so does its gradient. The first layer has no weight update to wait for it.

    Args:
        mlp_dim: dimension of each layer.
        bottom_num_mlp: layers below the embeddings.
        top_num_mlp: layers above.
        pooled_row: rows read from each table per sample.
        num_table: embedding tables.
        emb_dim: dimension of an embedding.
        micro_batch_size: samples of a chip.
        word: bytes per element.
        num_chip: chips among which the size of the exchange is already divided; 1 gives the whole size.

    Raises:
        UserError: an argument is not positive.
    """
    check_positive(
        "dlrm",
        mlp_dim=mlp_dim,
        bottom_num_mlp=bottom_num_mlp,
        top_num_mlp=top_num_mlp,
        pooled_row=pooled_row,
        num_table=num_table,
        emb_dim=emb_dim,
        micro_batch_size=micro_batch_size,
        word=word,
        num_chip=num_chip,
    )
    layers = bottom_num_mlp + top_num_mlp
    check_kernels("dlrm", 3 * layers)
    embeddings = num_table * pooled_row * emb_dim * micro_batch_size * word

    def product(number: int, suffix: str, direction: schema.Direction) -> schema.Kernel:
        kernel = weighted_gemm(f"MLP_{number}{suffix}", 1, mlp_dim, mlp_dim, micro_batch_size, word)
        kernel.fwd_bwd, kernel.gemm_input1_weight.tiling = direction, schema.NO_TILING
        if number == bottom_num_mlp:
            require_sizes(kernel.name, embeddings)
            exchanging(kernel, schema.ALL_TO_ALL, share(embeddings, num_chip))
            kernel.gemm_input1_weight.memory_size = embeddings
        return kernel

    def update(number: int) -> schema.Kernel:
        kernel = gemm(f"MLP_{number}_bwd_weight_update", 1, mlp_dim, micro_batch_size, mlp_dim, word)
        kernel.fwd_bwd, kernel.gemm_input1_input2.tiling = schema.BWD, schema.NO_TILING
        return exchanging(kernel, schema.ALL_REDUCE_PERIODIC, mlp_dim * mlp_dim * word)

    kernels = (
        *(product(number, "", schema.FWD) for number in range(1, layers + 1)),
        *(product(number, "_bwd", schema.BWD) for number in range(layers, 0, -1)),
        *(update(number) for number in range(layers, 0, -1)),
    )
    return graph_of(kernels, _edges(layers))


def _edges(layers: int) -> tuple[tuple[int, int], ...]:
    """A layer's activation meets the gradient of the layer after it in the weight update of that layer."""
    steps: tuple[tuple[range, Callable[[int], int]], ...] = (
        (range(1, layers), lambda layer: layer + 1),
        (range(layers + 1, 2 * layers), lambda layer: layer + 1),
        (range(1, layers), lambda layer: 3 * layers - layer),
        (range(layers + 1, 2 * layers), lambda layer: layer + layers + 1),
    )
    return tuple((source, target(source)) for sources, target in steps for source in sources)
