"""The machine of a design of all layers of a transformer, as text of a design file."""

MACHINE = """
system {
  num_chip: 16
  accelerator { core: 1040 systolic_width: 32 systolic_height: 6 sram_cap: 545259520.0 freq: 1.6 }
  r_r { x: 4 y: 4 link_bw_x: 50.0 link_bw_y: 50.0 par_x: "TP" par_y: "PP" }
  memory { dram_bw: 1638.4 dram_cap: 1099511600000.0 }
}
execution {
  llm {
    hidden_dim: 4096 head_dim: 128 num_head: 32 seq_len: 2048 num_layer: 24 global_batch_size: 64
    micro_batch_size: 1 tile_size: 256 num_layer_in_graph: 24
  }
  execution_style: DATAFLOW num_config: 12 overlap: PERFECT_OVERLAP compute_util: 0.9 word: 2
}
"""
