"""Mamba layer: projections around a parallel scan over the sequence [ko24]."""

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.errors import UserError
from dfcompile.generators.workloads.kernels import (
    check_positive,
    elementwise_of_two,
    graph_of,
    kernel_of,
    weighted_gemm,
)


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
    check_positive("mamba-scan", seq=seq, hidden=hidden, word=word)
    if seq == 1:
        raise UserError("mamba-scan: found seq 1 against at least 2")
    stages = (seq - 1).bit_length()
    channel = seq * word
    scan = [_per_channel(f"Scan_stage_{stage}", seq, 1, channel) for stage in range(stages)]
    for stage in scan:
        stage.gemm_input1_weight.tiling, stage.gemm_input1_weight.num_input = schema.NO_TILING, hidden
    gate = elementwise_of_two("Multiply", 1, seq, hidden, word)
    gate.elementwise_input1_input2.tiling = schema.M_TILING
    first, second, last = (weighted_gemm(f"Proj{number}", 1, hidden, hidden, seq, word) for number in (1, 2, 3))
    kernels = (first, second, _per_channel("Conv", seq, hidden, channel), *scan, gate, last)
    multiply = stages + 4
    stages_in_row = ((stage, stage + 1) for stage in range(3, multiply))
    edges = ((1, 3), *stages_in_row, (2, multiply), (multiply, multiply + 1))
    return graph_of(kernels, edges, first_id=0)


def _per_channel(name: str, seq: int, k: int, channel_bytes: int) -> schema.Kernel:
    """One channel of the whole sequence in, one out; factors take no SRAM."""
    sizes = {"K": k, "input_tensor_size": channel_bytes}
    kernel = kernel_of(name, KernelVariant.GEMM_INPUT1_WEIGHT, (1, seq, 1), channel_bytes, **sizes)
    kernel.gemm_input1_weight.skip_weight, kernel.gemm_input1_weight.tiling = True, schema.M_TILING
    return kernel
