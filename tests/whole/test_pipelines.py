"""All layers of a transformer on the stages of a pipeline."""

from dfcompile.dfmodel_backend.check.designs import check_design
from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.design_file.reading import parse_design
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from dfcompile.generators.language_model_workloads import llm_forward
from dfcompile.generators.workload_kernels import design_text
from tests.unit.dfmodel_backend.pipelined_machine import MACHINE


def test_a_transformer_of_24_layers_on_16_chips() -> None:
    graph = llm_forward(hidden=4096, seq=2048, num_head=32, head_dim=128, word=2, layers=24)
    design = parse_design(design_text(graph) + MACHINE, "x.txt")
    assert len(design.kernels) == 432

    found = solve_design(design, DesignOptions())

    assert found.gap <= 0.01
    check_design(found.design, found.decision, found.figures, RIGHT)
    stages = [
        sum(step.time_ns for step in found.figures.steps if step.stage == stage) for stage in range(4)
    ]  # fmt: skip
    assert max(stages) <= found.figures.step_ns
    assert min(stages) > 0.9 * max(stages)


def test_all_degrees_of_8_layers_are_searched_and_few_are_fused() -> None:
    """The bound of a pipeline has whole kernels, so that few choices are fused."""
    graph = llm_forward(hidden=4096, seq=2048, num_head=32, head_dim=128, word=2, layers=8)
    machine = MACHINE.replace("x: 4 y: 4", "x: 0 y: 0").replace("micro_batch_size: 1 tile_size: 256", "")

    found = solve_design(parse_design(design_text(graph) + machine, "x.txt"), DesignOptions())

    assert found.points == 3150
    assert found.fused_points < 20
    assert found.optimal
