"""Figures of small mappings, computed by hand."""

import pytest

from dfcompile.dfmodel_backend import DataflowGraph, MappingOptions, Overlap, TensorKind, check_mapping, map_graph
from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit
from dfcompile.errors import UserError, VerificationError
from dfcompile.records import replace
from tests.unit.dfmodel_backend.graphs import chain, elementwise, evaluate_mapping, gemm, machine, tensor, with_figure

TOGETHER = (("a", "b"),)
APART = (("a",), ("b",))


def test_fused_chain_reads_input_and_weight_and_writes_output() -> None:
    figures = evaluate_mapping(chain(), machine(cores=4), TOGETHER)

    config = figures.configs[0]
    assert (config.dram_read_bytes, config.dram_write_bytes) == (32 + 48, 32)
    # Four cores: b on one takes 8 cycles; a, 4 rows x 2 columns x 3, on two takes 12, on three (2 rows each) 12.
    assert config.compute_ns == 12
    assert config.core_splits == (CoreSplit(1, 2), CoreSplit(1, 1))
    assert config.memory_ns == 112
    assert config.bound_by == "memory"
    assert figures.flop == 2 * 4 * 3 * 2 + 8
    assert figures.time_s == pytest.approx(112e-9)


def test_separate_configurations_write_and_read_what_lies_between() -> None:
    figures = evaluate_mapping(chain(), machine(cores=4), APART)

    assert [c.dram_read_bytes for c in figures.configs] == [80, 32]
    assert [c.dram_write_bytes for c in figures.configs] == [32, 32]
    assert [c.compute_ns for c in figures.configs] == [6, 2]
    assert [c.dram_live_bytes for c in figures.configs] == [48 + 32 + 32, 48 + 32 + 32]


@pytest.mark.parametrize(
    ("overlap", "expected_ns"),
    [(Overlap.PERFECT_OVERLAP, 112), (Overlap.NO_OVERLAP, 124), (Overlap.OVERLAP_COMPUTE_MEMORY, 112)],
)
def test_overlap_modes(overlap: Overlap, expected_ns: float) -> None:
    figures = evaluate_mapping(chain(), machine(cores=4), TOGETHER, MappingOptions(overlap=overlap))

    assert figures.time_s == pytest.approx(expected_ns * 1e-9)


def test_assumed_utilization_replaces_core_splits() -> None:
    figures = evaluate_mapping(chain(), machine(cores=4), TOGETHER, MappingOptions(compute_utilization=0.5))

    assert figures.configs[0].compute_ns == pytest.approx(56 / (0.5 * 8))
    assert figures.configs[0].core_splits == ()


def test_sram_holds_weights_border_tiles_and_tiles_in_flight() -> None:
    # weight 48, two tiles of x and of y, two of t (levels 0 and 1): 48 + 64 + 64 + 64 with whole tensors.
    whole = evaluate_mapping(chain(), machine(sram_bytes=240), TOGETHER).configs[0]
    halves = evaluate_mapping(chain(), machine(sram_bytes=239), TOGETHER).configs[0]

    assert (whole.sram_bytes, whole.tiles) == (240, 1)
    assert (halves.sram_bytes, halves.tiles) == (48 + 3 * 32, 2)


def test_weights_too_large_for_sram_are_loaded_in_tiles_and_the_input_again_for_each() -> None:
    graph = DataflowGraph.of(
        "one",
        (gemm("a", 10, 4, 1),),
        (
            tensor("x", TensorKind.INPUT, 16, "", "a"),
            tensor("w", TensorKind.WEIGHT, 160, "", "a"),
            tensor("y", TensorKind.OUTPUT, 40, "a"),
        ),
    )

    mapping = map_graph(graph, machine(sram_bytes=80))

    check_mapping(graph, machine(sram_bytes=80), mapping)
    config = mapping.figures.configs[0]
    assert config.weight_tiles == 4  # 160 / 4 + 2 x 40 / 4 + 2 x 4 (x in 4 parts) = 68; three tiles need 90
    assert config.dram_read_bytes == 4 * 16 + 160
    assert config.dram_write_bytes == 40


def test_a_tensor_with_two_readers_is_read_once_per_configuration() -> None:
    graph = DataflowGraph.of(
        "fan_out",
        (elementwise("p", 4), elementwise("q", 4), elementwise("r", 4)),
        (tensor("t", TensorKind.INTERMEDIATE, 16, "p", "q", "r"),),
    )

    apart = evaluate_mapping(graph, machine(), (("p",), ("q", "r")))

    assert [c.dram_read_bytes for c in apart.configs] == [0, 16]
    assert [c.dram_write_bytes for c in apart.configs] == [16, 0]


def test_cost_power_and_energy_of_one_chip() -> None:
    figures = evaluate_mapping(chain(), replace(machine(gb_per_s=2.0), chips=8), TOGETHER)

    assert figures.cost_usd == 100 + 2
    assert figures.power_w == 10 + 1
    assert figures.energy_j == pytest.approx(11 * 56e-9)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ((("a",),), "kernel 'b': found in no configuration"),
        ((("a", "b"), ("b",)), "kernel 'b': found in configurations 0 and 1 against one"),
        ((("b",), ("a",)), "connection 'a' to 'b': found configurations 1 and 0 against ascending ones"),
        ((("a", "bb"),), r"configuration 0: no kernel 'bb' \(did you mean 'b'\?\)"),
    ],
)
def test_bad_assignments_are_named(assignment: tuple[tuple[str, ...], ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        evaluate_mapping(chain(), machine(), assignment)


@pytest.mark.parametrize(
    "field",
    ["compute_ns", "memory_ns", "time_ns", "sram_bytes", "dram_read_bytes", "dram_write_bytes", "dram_live_bytes"],
)
def test_checker_rejects_a_changed_figure(field: str) -> None:
    mapping = map_graph(chain(), machine())
    config = mapping.figures.configs[0]
    changed = replace(config, **{field: getattr(config, field) + 1})

    with pytest.raises(VerificationError, match="configuration 0"):
        check_mapping(chain(), machine(), with_figure(mapping, configs=(changed, *mapping.figures.configs[1:])))


def test_checker_rejects_a_missing_kernel_and_too_many_cores() -> None:
    mapping = map_graph(chain(), machine())
    lost = replace(mapping.figures.configs[0], kernels=("a",))
    greedy = replace(mapping.figures.configs[0], core_splits=(CoreSplit(3, 2), CoreSplit(1, 1)))

    with pytest.raises(VerificationError, match="kernel 'b': found in no configuration"):
        check_mapping(chain(), machine(), with_figure(mapping, configs=(lost,)))
    with pytest.raises(VerificationError, match="found 7 cores in use against 4"):
        check_mapping(chain(), machine(), with_figure(mapping, configs=(greedy,)))
