"""Design files of the oldest age mean today's fields, and what has no equal today is refused."""

import re

import pytest

from dfcompile.canonical_dag import KernelVariant
from dfcompile.cli.main import main
from dfcompile.dfmodel_backend.compatibility import ORIGINAL
from dfcompile.dfmodel_backend.design_file.message import parse_message, text_of
from dfcompile.dfmodel_backend.design_file.reading import parse_design
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.dfmodel_backend.sharding.designs import shard
from dfcompile.dfmodel_backend.workload.design import Dim
from dfcompile.errors import UserError
from dfcompile.generators.language_model_workloads import llm_training
from dfcompile.generators.workload_kernels import design_text
from tests.locations import DESIGNS

WAFER = DESIGNS / "infeasible" / "wse2_13B_seq51200.txt"
TEXT = WAFER.read_text()


def test_its_fields_are_todays() -> None:
    design = parse_design(TEXT, "x.txt")
    machine, execution, batch = design.machine, design.execution, design.execution.batch

    assert (machine.chips, machine.topology, machine.links[0].parallelism) == (1, "r", "TP")
    assert (machine.dram_gb_per_s, machine.dram_bytes) == (153.0, 1649267441664.0)
    assert (execution.word_bytes, execution.overlap, execution.configurations) == (2, Overlap.PERFECT_OVERLAP, 2)
    assert not execution.kernel_by_kernel
    assert (batch.sequence, batch.tile, batch.layers, batch.global_batch) == (51200, 51200, 40, 1)
    assert {kernel.tiling for kernel in design.kernels} == {Dim.N}
    variants = {kernel.name: kernel.variant for kernel in design.kernels}
    assert variants["Q"] is KernelVariant.GEMM_INPUT1_WEIGHT
    assert variants["MHA_GEMM_1"] is KernelVariant.GEMM_INPUT1_INPUT2
    assert variants["SOFTMAX"] is KernelVariant.ELEMENTWISE_INPUT1
    assert variants["Add_1"] is KernelVariant.ELEMENTWISE_INPUT1_INPUT2


def test_its_kernels_are_those_of_todays_generator_but_for_gradients_of_weights() -> None:
    today = llm_training(hidden=5120, seq=51200, num_head=40, head_dim=128, word=2)
    oldest = parse_message(TEXT, "x.txt").dataflow_graph

    generated = parse_message(design_text(today), "y.txt").dataflow_graph
    kept = len(oldest.kernels)
    assert [kernel.name for kernel in generated.kernels[kept:]] == [
        f"{name}_bwd_weight_update" for name in ("FFN1", "FFN0", "PROJ_GEMM", "V", "K", "Q")
    ]
    # The published file gives the last sum one operand only.
    different = [
        old.name for old, new in zip(oldest.kernels, generated.kernels[:kept], strict=True) if str(old) != str(new)
    ]
    assert different == ["Add_2"]
    edges = [(edge.startIdx, edge.endIdx) for edge in generated.connections if edge.endIdx <= kept]
    assert [(edge.startIdx, edge.endIdx) for edge in oldest.connections] == edges


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


def test_chips_may_be_on_a_ring_or_a_torus_in_either_form() -> None:
    enumerated = TEXT.replace(
        "topo: SINGLE_CHIP\n  num_chip: 1", "topo: TORUS_2D num_chip: 8 x: 4 y: 2 link_bw_x: 5 link_bw_y: 6"
    )
    nested = TEXT.replace(
        "topo: SINGLE_CHIP\n  num_chip: 1", "num_chip: 8 torus_2d { x: 4 y: 2 link_bw_x: 5 link_bw_y: 6 }"
    )
    links = parse_design(enumerated, "x.txt").machine.links

    assert [(link.chips, link.gb_per_s, link.parallelism) for link in links] == [(4, 5.0, "TP"), (2, 6.0, "PP")]
    assert text_of(parse_message(nested, "x.txt")) == text_of(parse_message(enumerated, "x.txt"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seq_tile_size", "tile_size", r"x.txt:\d+: unknown field 'tile_size' of Training in the oldest format"),
        ("cost {", "execution { }\ncost {", r"unknown field 'execution' of DSE in the oldest format"),
        ("dram_bw: 153.0", "", "field 'system.memory.dram_bw': found 0.0 against a positive number"),
        ("topo: SINGLE_CHIP", "", "field 'system.topo': found none against SINGLE_CHIP"),
        ("topo: SINGLE_CHIP", "topo: SINGLE_CHIP x: 4", "field 'system.x': found 4 against none of SINGLE_CHIP"),
        ("topo: SINGLE_CHIP", "topo: SINGLE_CHIP fc_1d { x: 1 }", "found both 'system.topo' and 'system.fc_1d'"),
        ("topo: SINGLE_CHIP", "topo: TORUS_3D", "topology TORUS_3D of the oldest format: found no equal"),
        ("optimization: 1", "optimization: 3", "field 'training.optimization': found 3 against FLASHATTENTION"),
        ("optimization: 1", "optimization: KERNEL_BY_KERNEL", "num_config': found 2 against the 35 kernels"),
        ("weight_tensor_size: 52428800.0", "weight_tensor_size: -2", "'Q': field 'weight_tensor_size': found -2"),
        ("weight_tensor_size: 52428800.0", "weight_tensor_size: -1", "kernel 'Q': SYSTOLIC, but neither"),
        (
            "input_tensor_2_size: -1.0\n    weight_tensor_size: 52428800.0",
            "input_tensor_2_size: 5\n    weight_tensor_size: 52428800.0",
            "kernel 'Q': found both 'weight_tensor_size' and 'input_tensor_2_size'",
        ),
        ("K: 1\n", "K: 2\n", "kernel 'Add_Prev_Layer': field 'K': found 2 against 1 of a SIMD kernel"),
        ("id: 1\n", "id: 1\n  type: SYSTOLIC\n", "kernel 'Add_Prev_Layer': field 'type': found 1 in the kernel and 2"),
        ("num_head: 40", "num_head: 41", "field 'execution.llm.hidden_dim': found 5120 against num_head x head_dim"),
    ],
)  # fmt: skip
def test_what_it_cannot_mean_is_refused(old: str, new: str, message: str) -> None:
    assert old in TEXT
    with pytest.raises(UserError, match=message) as caught:
        parse_design(TEXT.replace(old, new, 1), "x.txt")

    assert "\n" not in str(caught.value)


def test_words_in_comments_and_names_tell_no_age() -> None:
    today = (DESIGNS / "readme_gpt3_1t_sn30.txt").read_text()
    named = f"# training {{ topo: SINGLE_CHIP }}\n{today}".replace('"Add_Prev_Layer"', '"a training { layer"')

    assert parse_design(named, "x.txt").kernels[0].name == "a training { layer"
