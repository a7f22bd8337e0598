"""Solved files: what was solved comes back, and solving again changes nothing."""

from pathlib import Path

import pytest

from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT, Compatibility
from dfcompile.dfmodel_backend.design_file import design_of
from dfcompile.dfmodel_backend.design_message import parse_message, read_message, text_of
from dfcompile.dfmodel_backend.design_options import DesignOptions
from dfcompile.dfmodel_backend.design_search import solve_design
from dfcompile.dfmodel_backend.schema import dfmodel_pb2 as schema
from dfcompile.dfmodel_backend.solved_file import solved_message, variant_of

DATA = Path(__file__).parents[2] / "data" / "dfmodel"
OUTPUTS = ("sharding", "shard_outer_M", "shard_K", "shard_N", "communication_type", "communication_size")
EDGE_OUTPUTS = (
    *("buffer_depth", "tensor_size", "shard_tensor_size", "startName", "endName", "lane_stage_type"),
    "communication_size",
)


def solve_text(message: schema.DSE, compatibility: Compatibility) -> str:
    solution = solve_design(design_of(message, "x.txt"), DesignOptions(compatibility=compatibility))
    return text_of(solved_message(message, solution))


def without_outputs(message: schema.DSE) -> schema.DSE:
    bare = schema.DSE()
    bare.CopyFrom(message)
    for kernel in bare.dataflow_graph.kernels:
        kernel.ClearField("topological_number")
        variant = variant_of(kernel)
        for field in OUTPUTS:
            if field in variant.DESCRIPTOR.fields_by_name:
                variant.ClearField(field)
    for connection in bare.dataflow_graph.connections:
        for name in EDGE_OUTPUTS:
            connection.ClearField(name)
    return bare


def test_a_published_solved_file_comes_back_field_by_field() -> None:
    """The file states an empty size, -0, of every edge that converts nothing; all else is equal, byte for byte."""
    published = read_message(DATA / "solved_decode_ring16.txt")
    expected = text_of(published).replace("    communication_size: -0.0\n", "")
    bare = without_outputs(published)
    assert len(expected.splitlines()) - len(text_of(bare).splitlines()) >= 171

    assert solve_text(bare, ORIGINAL) == expected


@pytest.mark.parametrize("compatibility", [RIGHT, ORIGINAL])
@pytest.mark.parametrize(
    "name",
    ["readme_gpt3_1t_sn30", "llm_175B_fwd_kbk_8x1", "fft_a100_1024", "dlrm_A_zionex_128", "llm_175B_fwd_sramdram_mm"],
)
def test_solving_a_solved_file_changes_nothing(name: str, compatibility: Compatibility) -> None:
    once = solve_text(read_message(DATA / f"{name}.txt"), compatibility)

    assert solve_text(parse_message(once, "x.txt"), compatibility) == once
