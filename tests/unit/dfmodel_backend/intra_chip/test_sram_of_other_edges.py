"""SRAM of tensors in flight as a published log books them, and as it is right: one layer of decoding on 4 x 4 chips."""

import numpy as np
import pytest

from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT, Compatibility, parse_compatibility
from dfcompile.dfmodel_backend.design_file.message import parse_message, text_of
from dfcompile.dfmodel_backend.design_file.reading import parse_design
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.sharding.designs import shard
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.generators.language_model_workloads import FROM_CACHES, llm_decode
from dfcompile.generators.workload_kernels import design_text

MACHINE = """
system {
  num_chip: 16
  accelerator {
    core: 1040 systolic_width: 32 systolic_height: 6 sram_cap: 545259520.0 freq: 1.6 link_latency: 150
  }
  r_r { x: 4 y: 4 link_bw_x: 50.0 link_bw_y: 50.0 par_x: "TP" par_y: "PP" }
  memory { dram_bw: 1638.4 dram_cap: 68719476736.0 }
}
execution {
  llm {
    hidden_dim: 4096 head_dim: 32 num_head: 128 seq_len: 1 num_layer: 32 global_batch_size: 16384
    micro_batch_size: 1 num_layer_in_graph: 1
  }
  execution_style: DATAFLOW num_config: 1 overlap: NO_OVERLAP separate_rs_ag_for_ar: true compute_util: 0.9 word: 2
}
"""
# Bytes of each connection times its depth, in the order of the file.
SHARED = (131104, 131104, 131104, 0, 4096, 16384, 16384, 16384, 90112, 16384)  # of connections 9 to 18
LOGGED = (16384, 16384, 16384, 16384, 16384, 16384, 16384, 0, *SHARED, 4096, 14336, 4096, 16384, 57344)
# K, V and Q hand a head's share to their readers (levels 2 to 3 and 2 to 4); FFN0 a quarter of 14336 words over two
# levels; FFN1 all of 4096 words over two levels.
RIGHTLY = (16384, 16384, 16384, 16384, 4096, 4096, 6144, 0, *SHARED, 14336, 14336, 16384, 16384, 57344)
WEIGHTS = 4 * 8388608 + 2 * 29360128
CACHES = 2 * 8388608


def decoding() -> Design:
    """The caches are in SRAM, so that what they hand on takes no buffers, and include the new token."""
    graph = llm_decode(
        hidden=4096, num_head=32, head_dim=128, word=2, window=4096, tensor_parallel=4, mlp_dim=14336, cache="streamed"
    )
    message = parse_message(design_text(graph) + MACHINE, "x.txt")
    for kernel in message.dataflow_graph.kernels:
        if kernel.name.endswith("_cache"):
            cache = kernel.elementwise_input1
            cache.sram_extra = cache.dram_extra = cache.memory_size
    for connection in message.dataflow_graph.connections:
        connection.zero_out = (connection.startIdx, connection.endIdx) in FROM_CACHES
    return parse_design(text_of(message), "x.txt")


@pytest.mark.parametrize(
    ("compatibility", "booked", "total"),
    [
        (ORIGINAL, LOGGED, 764000),
        (RIGHT, RIGHTLY, 751712),
        (parse_compatibility("right,sram-of-other-edges"), LOGGED, 764000),
        (parse_compatibility("dfmodel,no-sram-of-other-edges"), RIGHTLY, 751712),
    ],
)
def test_connections_are_booked_as_logged_or_as_they_are(
    compatibility: Compatibility, booked: tuple[int, ...], total: int
) -> None:
    design = decoding()
    sharding = shard(design, compatibility=ORIGINAL)
    model = DesignModel(design, sharding.sharding, 1, compatibility)
    size, depth = model.sram_sizes

    assert sharding.communication_bytes == pytest.approx(16384)  # as logged
    assert (size * depth).tolist() == list(booked)
    assert sum(booked) == total
    everything = np.ones((1, len(design.kernels)), bool)
    assert model.sram_bytes(everything).tolist() == [total + WEIGHTS + CACHES]
