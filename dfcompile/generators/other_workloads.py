"""Workloads that are no language models: recommendation, Linpack, Fourier transforms, Mamba [ko24]."""

import math
from collections.abc import Callable

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError
from dfcompile.generators import workload_kernels as design

LARGEST_RADIX = 4096


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
        top_num_mlp: layers above the embeddings.
        pooled_row: rows read from each table per sample.
        num_table: embedding tables.
        emb_dim: dimension of an embedding.
        micro_batch_size: samples of a chip.
        word: bytes per element.
        num_chip: chips among which the size of the exchange is divided (1: the whole size).

    Raises:
        UserError: an argument is not positive.
    """
    design.check_positive("dlrm", **locals())
    layers = bottom_num_mlp + top_num_mlp
    design.check_kernels("dlrm", 3 * layers)
    embeddings = num_table * pooled_row * emb_dim * micro_batch_size * word

    def product(number: int, suffix: str, direction: schema.Direction) -> schema.Kernel:
        kernel = design.weighted_gemm(f"MLP_{number}{suffix}", 1, mlp_dim, mlp_dim, micro_batch_size, word)
        kernel.fwd_bwd, kernel.gemm_input1_weight.tiling = direction, schema.NO_TILING
        if number == bottom_num_mlp:
            design.require_sizes(kernel.name, embeddings)
            design.set_exchange(kernel, schema.ALL_TO_ALL, design.share(embeddings, num_chip))
            kernel.gemm_input1_weight.memory_size = embeddings
        return kernel

    def update(number: int) -> schema.Kernel:
        kernel = design.gemm(f"MLP_{number}_bwd_weight_update", 1, mlp_dim, micro_batch_size, mlp_dim, word)
        kernel.fwd_bwd, kernel.gemm_input1_input2.tiling = schema.BWD, schema.NO_TILING
        return design.set_exchange(kernel, schema.ALL_REDUCE_PERIODIC, mlp_dim * mlp_dim * word)

    kernels = (
        *(product(number, "", schema.FWD) for number in range(1, layers + 1)),
        *(product(number, "_bwd", schema.BWD) for number in range(layers, 0, -1)),
        *(update(number) for number in range(layers, 0, -1)),
    )
    return design.graph_of(kernels, _training_edges(layers))


def _training_edges(layers: int) -> tuple[tuple[int, int], ...]:
    """A layer's activation meets the gradient of the layer after it in the weight update of that layer."""
    steps: tuple[tuple[range, Callable[[int], int]], ...] = (
        (range(1, layers), lambda layer: layer + 1),
        (range(layers + 1, 2 * layers), lambda layer: layer + 1),
        (range(1, layers), lambda layer: 3 * layers - layer),
        (range(layers + 1, 2 * layers), lambda layer: layer + layers + 1),
    )
    return tuple((source, target(source)) for sources, target in steps for source in sources)


def hpl(*, n: int, b: int, word: int, iterations: int | None = None) -> schema.Dataflow_Graph:
    """Return a chain of kernels; the ``i``-th updates the trailing matrix of side ``n - i b`` by a block column.

    The block column is broadcast along one dimension of the grid of chips and sent on along the other.

    Args:
        n: side of the matrix.
        b: side of a block.
        word: bytes per element.
        iterations: block columns in the graph (all of them if not given).

    Raises:
        UserError: an argument is not positive, a block larger than the matrix, or more iterations than block columns.
    """
    design.check_positive("hpl", n=n, b=b, word=word)
    if b > n:
        raise UserError(f"hpl: found b {b} against at most n {n}")
    columns = -(-n // b)
    steps = columns if iterations is None else iterations
    design.check_positive("hpl", iterations=steps)
    if steps > columns:
        raise UserError(f"hpl: found iterations {steps} against {columns} block columns of b {b} in n {n}")
    design.check_kernels("hpl", steps)
    kernels = [_iteration(step, n - step * b, b, word) for step in range(steps)]
    return design.graph_of(kernels, [(step, step + 1) for step in range(1, steps)])


def _iteration(step: int, side: int, b: int, word: int) -> schema.Kernel:
    column = side * b * word
    kernel = design.set_exchange(design.gemm(f"Iteration_{step + 1}", 1, side, side, b, word), schema.BROADCAST, column)
    kernel.config, kernel.fwd_bwd = design.ANY_CONFIGURATION, schema.FWD_BWD_UNSET
    product = kernel.gemm_input1_input2
    product.input_tensor_1_size, product.input_tensor_2_size, product.tiling = column, 0, schema.NO_TILING
    product.communication_type_2, product.communication_size_2 = schema.POINT_TO_POINT, column
    return kernel


def fft(*, length: int, word: int, radix: int = 2) -> schema.Dataflow_Graph:
    """Return two kernels: transforms of all columns, then of all rows, of a square of ``side = floor(sqrt(length))``.

    Args:
        length: length of the transform.
        word: bytes per element.
        radix: radix of a butterfly.

    Raises:
        UserError: an argument is not positive, or a radix that does not fit the side.
    """
    design.check_positive("fft", length=length, word=word, radix=radix)
    if length < 4:
        raise UserError(f"fft: found length {length} against at least 4")
    side = math.isqrt(length)
    if not 2 <= radix <= min(side, LARGEST_RADIX):
        most = min(side, LARGEST_RADIX)
        raise UserError(f"fft: found radix {radix} against 2 to {most} (length {length} has sides of {side})")
    products = butterfly_products(side, radix)
    first, second = (_transform(name, side, products, word) for name in ("Step_1", "Step_2"))
    return design.graph_of([first, design.set_exchange(second, schema.ALL_TO_ALL, side * side * word)], [(1, 2)])


def butterfly_products(side: int, radix: int) -> int:
    """Return ``floor(4 radix log(side) / log(radix))``: real products per element of a transform, exactly.

    >>> butterfly_products(2**20, 32), butterfly_products(1036214, 2)
    (512, 159)
    """
    products = 4 * radix * math.log2(side) / math.log2(radix)
    near = round(products)
    if abs(products - near) > 1e-6:
        return math.floor(products)
    return near if radix**near <= side ** (4 * radix) else near - 1


def _transform(name: str, side: int, products: int, word: int) -> schema.Kernel:
    """The factors of the butterflies are no weight: they are computed."""
    size, variant = side * side * word, KernelVariant.GEMM_INPUT1_WEIGHT
    kernel = design.kernel_of(name, variant, (1, side, side), size, K=products, input_tensor_size=size)
    kernel.config, kernel.fwd_bwd = design.ANY_CONFIGURATION, schema.FWD_BWD_UNSET
    kernel.gemm_input1_weight.tiling = schema.NO_TILING
    return kernel


def mamba_scan(*, seq: int, hidden: int, word: int) -> schema.Dataflow_Graph:
    """Return projections, a convolution, ``ceil(log2(seq))`` stages of a scan, the gate and the last projection.

    A stage handles one channel at a time: `hidden` inputs go through it one after the other.

    Args:
        seq: sequence length.
        hidden: channels.
        word: bytes per element.

    Raises:
        UserError: an argument is not positive, or a sequence too short to scan.
    """
    design.check_positive("mamba-scan", seq=seq, hidden=hidden, word=word)
    if seq == 1:
        raise UserError("mamba-scan: found seq 1 against at least 2")
    stages = (seq - 1).bit_length()
    channel = seq * word
    scan = [_per_channel(f"Scan_stage_{stage}", seq, 1, channel) for stage in range(stages)]
    for stage in scan:
        stage.gemm_input1_weight.tiling, stage.gemm_input1_weight.num_input = schema.NO_TILING, hidden
    gate = design.elementwise_of_two("Multiply", 1, seq, hidden, word)
    gate.elementwise_input1_input2.tiling = schema.M_TILING
    first, second, last = (design.weighted_gemm(f"Proj{number}", 1, hidden, hidden, seq, word) for number in (1, 2, 3))
    kernels = (first, second, _per_channel("Conv", seq, hidden, channel), *scan, gate, last)
    multiply = stages + 4
    stages_in_row = ((stage, stage + 1) for stage in range(3, multiply))
    return design.graph_of(kernels, ((1, 3), *stages_in_row, (2, multiply), (multiply, multiply + 1)), first_id=0)


def _per_channel(name: str, seq: int, k: int, channel_bytes: int) -> schema.Kernel:
    """One channel of the whole sequence in, one out; factors take no SRAM."""
    sizes = {"K": k, "input_tensor_size": channel_bytes}
    kernel = design.kernel_of(name, KernelVariant.GEMM_INPUT1_WEIGHT, (1, seq, 1), channel_bytes, **sizes)
    kernel.gemm_input1_weight.skip_weight, kernel.gemm_input1_weight.tiling = True, schema.M_TILING
    return kernel
