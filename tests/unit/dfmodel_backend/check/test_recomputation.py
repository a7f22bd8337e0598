"""What is reported of mappings and designs is what the evaluator says of the assignment; anything else is a bug."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given

from dfcompile.cli.main import main
from dfcompile.dfmodel_backend import ChipCounts, DataflowGraph, MappingOptions, System, TensorKind, map_graph
from dfcompile.dfmodel_backend.check.recomputation import recompute_design, recompute_mapping
from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.evaluate.graphs import Figures, Mapping
from dfcompile.dfmodel_backend.options import DesignOptions, ShardingObjective
from dfcompile.dfmodel_backend.solve import chip_counts
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution, solve_design
from dfcompile.errors import InfeasibleError, VerificationError
from dfcompile.records import replace
from tests.examples import examples
from tests.locations import DESIGNS
from tests.onnx_files import save_convolution
from tests.unit.dfmodel_backend.graphs import (
    chain,
    elementwise,
    evaluate_mapping,
    figure_of,
    graphs,
    machine,
    machines,
    tensor,
    with_figure,
)
from tests.unit.dfmodel_backend.solved_designs import solved_design

NUMBERS = tuple(name for name in Figures.__struct_fields__ if name not in ("configs", "exchanges"))
NAMES = ("llm_175B_fwd_sramdram_mm", "serve_gpt3_prefill_genz_f10_4x", "mamba_scan_256k_rdu")


@examples(100)
@given(graphs(), machines())
def test_every_mapping_is_what_the_evaluator_says(graph: DataflowGraph, system: System) -> None:
    try:
        mapping = map_graph(graph, system)
    except InfeasibleError:
        return
    recompute_mapping(graph, system.one_chip, mapping)
    # The evaluator finds what waits in DRAM from first and last use, the mapper set by set.
    configs = mapping.figures.configs
    assert evaluate_mapping(graph, system, tuple(config.kernels for config in configs)).configs == configs


@pytest.mark.parametrize("figure", NUMBERS)
def test_a_damaged_figure_is_found(figure: str) -> None:
    mapping = map_graph(chain(), machine())
    damaged = with_figure(mapping, **{figure: figure_of(mapping, figure) * 1.01 + 1})

    with pytest.raises(VerificationError, match=rf"figure {figure}: found .* of the evaluator"):
        recompute_mapping(chain(), machine().one_chip, damaged)


def test_a_damaged_configuration_is_found() -> None:
    mapping = map_graph(chain(), machine())
    first, *others = mapping.figures.configs
    damaged = replace(first, dram_live_bytes=first.dram_live_bytes + 1)

    with pytest.raises(VerificationError, match=r"figure configs\.0\.dram_live_bytes: found"):
        recompute_mapping(chain(), machine().one_chip, with_figure(mapping, configs=(damaged, *others)))


def test_a_mapping_with_another_figure_is_never_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def accept(*_: object) -> None:
        return None

    def slower(graph: DataflowGraph, system: System, options: MappingOptions | None = None) -> Mapping:
        found = map_graph(graph, system, options)
        return with_figure(found, time_s=2 * found.figures.time_s)

    monkeypatch.setattr(chip_counts, "check_mapping", accept)
    monkeypatch.setattr(chip_counts, "map_graph", slower)
    with pytest.raises(VerificationError, match="figure time_s: found"):
        ChipCounts(chain(), machine()).fastest(1)


def test_the_command_tells_a_difference_as_a_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = save_convolution(tmp_path / "small.onnx", shape=(1, 1, 8, 8), filters=(2, 1, 3, 3))

    def twice(graph: DataflowGraph, system: System, options: MappingOptions | None = None) -> Mapping:
        found = map_graph(graph, system, options)
        return with_figure(found, dram_bytes=2 * found.figures.dram_bytes)

    monkeypatch.setattr(chip_counts, "check_mapping", lambda *_: None)
    monkeypatch.setattr(chip_counts, "map_graph", twice)

    assert main([str(model), "--pes", "4"]) == 2
    assert "figure dram_bytes: found" in capsys.readouterr().err


@pytest.fixture(scope="module", params=NAMES)
def solution(request: pytest.FixtureRequest) -> DesignSolution:
    return solved_design(request.param)


def test_a_design_is_what_the_evaluator_says(solution: DesignSolution) -> None:
    design, decision, moved = solution.design, solution.decision, solution.communication_bytes

    recompute_design(design, decision, solution.figures, moved, RIGHT)
    for figure in ("batch_ns", "latency_ns", "dram_bytes", "dram_traffic_bytes", "network_traffic_bytes", "flop"):
        damaged = replace(solution.figures, **{figure: getattr(solution.figures, figure) * 1.01 + 1})
        with pytest.raises(VerificationError, match=f"figure {figure}: found"):
            recompute_design(design, decision, damaged, moved, RIGHT)
    with pytest.raises(VerificationError, match="figure sharding_bytes: found"):
        recompute_design(design, decision, solution.figures, moved + 1, RIGHT)


def test_bytes_of_a_sharding_that_was_chosen_for_its_time() -> None:
    options = DesignOptions(objective=ShardingObjective.TIME)
    found = solve_design(read_design(DESIGNS / f"{NAMES[1]}.txt"), options)

    recompute_design(found.design, found.decision, found.figures, found.communication_bytes, RIGHT)


def test_evaluation_takes_steps_that_grow_as_the_graph_does() -> None:
    few, many = (_lines(_relus(count)) for count in (40, 320))

    assert many < 20 * few  # eight times as many kernels; pairs of them would be 64 times as many


def _relus(count: int) -> DataflowGraph:
    names = [f"r{number}" for number in range(count)]
    kernels = tuple(elementwise(name, 8) for name in names)
    between = [
        tensor(f"t{number}", TensorKind.INTERMEDIATE, 32, names[number], names[number + 1])
        for number in range(count - 1)
    ]
    ends = [tensor("x", TensorKind.INPUT, 32, "", names[0]), tensor("y", TensorKind.OUTPUT, 32, names[-1])]
    return DataflowGraph.of("relus", kernels, (*ends, *between))


Traced = Callable[[FrameType, str, object], "Traced"]


def _lines(graph: DataflowGraph) -> int:
    """Return how many lines are run to evaluate a graph."""
    count = 0

    def counted(frame: FrameType, event: str, _: object) -> Traced:  # of a protocol
        nonlocal count
        count += event == "line"
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        evaluate_mapping(graph, machine(), tuple((kernel.name,) for kernel in graph.kernels))
    finally:
        sys.settrace(before)
    return count
