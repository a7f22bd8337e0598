"""Mamba layer: projections around a parallel scan over the sequence [ko24]."""

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.workload.design import Dim
from dfcompile.errors import UserError
from dfcompile.generators.workloads.arguments import check_positive
from dfcompile.generators.workloads.kernels import elementwise_of_two, weighted_gemm
from dfcompile.generators.workloads.workload_graph import KernelType, WorkloadGraph, WorkloadKernel, numbered
from dfcompile.records import replace


def mamba_scan(*, seq: int, hidden: int, word: int) -> WorkloadGraph:
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
    convolution = replace(_per_channel("Conv", seq, hidden, channel), tiling=Dim.M)
    scan = (
        replace(_per_channel(f"Scan_stage_{stage}", seq, 1, channel), tiling=Dim.NONE, inputs=hidden)
        for stage in range(stages)
    )
    kernels = (
        weighted_gemm("Proj1", 1, hidden, hidden, seq, word),
        weighted_gemm("Proj2", 1, hidden, hidden, seq, word),
        convolution,
        *scan,
        replace(elementwise_of_two("Multiply", 1, seq, hidden, word), tiling=Dim.M),
        weighted_gemm("Proj3", 1, hidden, hidden, seq, word),
    )
    multiply = stages + 4
    edges = (
        (1, 3),
        *((stage, stage + 1) for stage in range(3, multiply)),
        (2, multiply),
        (multiply, multiply + 1),
    )
    return WorkloadGraph(kernels, numbered(edges, first_id=0))


def _per_channel(name: str, seq: int, k: int, channel_bytes: int) -> WorkloadKernel:
    """One channel of the whole sequence in, one out; factors take no SRAM."""
    return WorkloadKernel(
        name,
        KernelType.SYSTOLIC,
        KernelVariant.GEMM_INPUT1_WEIGHT,
        1,
        seq,
        k,
        1,
        input_bytes=channel_bytes,
        output_bytes=channel_bytes,
        is_weight_skipped=True,
    )
