"""A published design that its log calls infeasible: a wafer of one chip."""

import re

import pytest

from dfcompile.cli.main import main
from dfcompile.dfmodel_backend.compatibility import ORIGINAL
from dfcompile.dfmodel_backend.design_file.message import parse_message
from dfcompile.dfmodel_backend.design_file.reading import parse_design
from dfcompile.dfmodel_backend.sharding.designs import shard
from dfcompile.generators.language_model_workloads import llm_training
from dfcompile.generators.workload_kernels import design_text
from tests.locations import DESIGNS

WAFER = DESIGNS / "infeasible" / "wse2_13B_seq51200.txt"
TEXT = WAFER.read_text()


def test_its_kernels_are_those_of_the_generator_but_for_gradients_of_weights() -> None:
    today = llm_training(hidden=5120, seq=51200, num_head=40, head_dim=128, word=2)
    published = parse_message(TEXT, "x.txt").dataflow_graph

    generated = parse_message(design_text(today), "y.txt").dataflow_graph
    kept = len(published.kernels)
    assert [kernel.name for kernel in generated.kernels[kept:]] == [
        f"{name}_bwd_weight_update" for name in ("FFN1", "FFN0", "PROJ_GEMM", "V", "K", "Q")
    ]
    # The published file gives the last sum one operand only.
    different = [
        old.name for old, new in zip(published.kernels, generated.kernels[:kept], strict=True) if str(old) != str(new)
    ]
    assert different == ["Add_2"]
    edges = [(edge.startIdx, edge.endIdx) for edge in generated.connections if edge.endIdx <= kept]
    assert [(edge.startIdx, edge.endIdx) for edge in published.connections] == edges


def test_its_sharding_moves_the_logged_bytes() -> None:
    found = shard(parse_design(TEXT, "x.txt"), compatibility=ORIGINAL)

    assert found.communication_bytes == pytest.approx(2097152000.0)


@pytest.mark.parametrize(
    ("compat", "message"),
    [
        (
            "right",
            r"field 'system.memory.dram_cap': found 1649267441664 bytes against \d+ .*\(dram_cap of at least \d+",
        ),
        (
            "dfmodel,no-tile-size-is-a-hint",
            r"kernel 'MHA_GEMM_1': needs \d+ bytes of SRAM alone, in 1 tiles, against .*sram_cap of \d+ is enough",
        ),
    ],
)
def test_it_is_infeasible_as_its_log_says(compat: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the tiles that the file gives; the newest tool would take smaller ones."""
    status = main([str(WAFER), "--compat", compat])

    error = capsys.readouterr().err
    assert status == 1
    assert re.search(message, error), error
    assert error.count("\n") == 1
