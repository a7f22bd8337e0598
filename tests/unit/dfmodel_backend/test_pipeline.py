"""Graphs of all layers: pipeline stages of a whole network, and a network cut by hand."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.design import Link
from dfcompile.dfmodel_backend.design_checker import check_design
from dfcompile.dfmodel_backend.design_evaluator import sent_ns
from dfcompile.dfmodel_backend.design_file import parse_design
from dfcompile.dfmodel_backend.design_model import DesignModel
from dfcompile.dfmodel_backend.design_options import DesignOptions
from dfcompile.dfmodel_backend.design_search import solve_design
from dfcompile.dfmodel_backend.generators.llm_forward import llm_forward
from dfcompile.dfmodel_backend.generators.text_form import design_text
from dfcompile.dfmodel_backend.intra_chip import set_times
from dfcompile.dfmodel_backend.pipeline import fuse_stages
from tests.unit.dfmodel_backend.designs import designs, every_arc

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


def test_a_transformer_of_24_layers_on_16_chips() -> None:
    graph = llm_forward(hidden=4096, seq=2048, num_head=32, head_dim=128, word=2, layers=24)
    design = parse_design(design_text(graph) + MACHINE, "x.txt")
    assert len(design.kernels) == 432
    started = time.process_time()

    found = solve_design(design, DesignOptions())

    assert time.process_time() - started < 120
    assert found.gap <= 0.01
    check_design(found.design, found.decision, found.figures, RIGHT)
    stages = [
        sum(step.time_ns for step in found.figures.steps if step.stage == stage) for stage in range(4)
    ]  # fmt: skip
    assert max(stages) <= found.figures.step_ns
    assert min(stages) > 0.9 * max(stages)


def slowest_by_brute_force(model: DesignModel, slots: int, stages: int) -> float:
    """Try every assignment of kernels to configurations of stages."""
    count = len(model.shares)
    every = np.array([[mask >> k & 1 for k in range(count)] for mask in range(1 << count)], bool)
    times = set_times(model, every)
    best = float("inf")
    for place in itertools.product(range(slots * stages), repeat=count):
        if any(place[edge.source] > place[edge.target] for edge in model.edges):
            continue
        sums = [0.0] * stages
        for slot in range(slots * stages):
            mask = sum(1 << k for k in range(count) if place[k] == slot)
            sums[slot // slots] += times[mask] if mask else 0.0
        for stage in range(stages):
            if any(slot // slots == stage for slot in place):
                done = np.array([[slot // slots <= stage for slot in place]])
                sums[stage] += sent_ns(model, done)
        best = min(best, max(sums))
    return best


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_stages_equal_brute_force(data: st.DataObject) -> None:
    drawn = data.draw(designs(4))
    design = replace(
        drawn,
        machine=replace(
            drawn.machine,
            chips=2,
            topology="r",
            links=(Link("r", 2, data.draw(st.sampled_from([0.5, 8.0])), "PP", 0.0),),
            dram_bytes=0.0,
        ),
        execution=replace(drawn.execution, configurations=2, batch=replace(drawn.execution.batch, layers_in_graph=2)),
    )
    if len(design.kernels) == 2:
        return  # as many configurations as kernels mean kernel by kernel
    model = DesignModel(design, {}, 1, RIGHT)

    found = fuse_stages(model, every_arc(model))
    expected = slowest_by_brute_force(model, 2, 2)

    if found is None:
        assert expected == float("inf")
    else:
        assert found.time_ns == pytest.approx(expected, rel=2e-6)
