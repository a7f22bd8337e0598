"""Memory units at the edges: solved files say how tensors were spread, switches that leave too few units are named."""

import random

import pytest

from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.design_file.message import parse_message, read_message, text_of
from dfcompile.dfmodel_backend.design_file.reading import design_of
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.dfmodel_backend.design_file.solved import solved_message
from dfcompile.dfmodel_backend.evaluate.designs import evaluate_design
from dfcompile.dfmodel_backend.intra_chip.memory_units import labels_of
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.solve.corrections import corrections_of
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.pmu_designs import random_design, with_pmus

DECODE = DESIGNS / "serve_gpt3_decode_genz_f10_1x.txt"


def with_memory_units(pmus: int, pmu_bytes: float) -> schema.DSE:
    message = read_message(DECODE)
    message.execution.ClearField("compute_util")
    message.execution.turn_off_p_and_r = True
    message.system.accelerator.pmu, message.system.accelerator.pmu_cap = pmus, pmu_bytes
    return message


def test_a_solved_file_with_memory_units_solves_to_itself_with_the_labels_that_were_used() -> None:
    message = with_memory_units(640, 2.0**20)
    message.dataflow_graph.connections[0].lane_stage_type = schema.STAGE
    design = design_of(message, "x.txt")
    solution = solve_design(design, DesignOptions())
    solved = solved_message(message, solution)

    again = design_of(parse_message(text_of(solved), "x.txt"), "x.txt")
    labels = {"LANE": "lane", "STAGE": "stage"}
    written = [labels[schema.LaneStage.Name(one.lane_stage_type)] for one in solved.dataflow_graph.connections]
    assert written == [label.value for label in labels_of(design)]
    assert set(written) == {"lane", "stage"}
    assert labels_of(again) == labels_of(design)
    resolved = solve_design(again, DesignOptions())
    assert resolved.figures.batch_ns == solution.figures.batch_ns
    assert text_of(solved_message(solved, resolved)) == text_of(solved)


ENOUGH = 5  # switches named


def tight(seed: int) -> Design:
    """Return a design of few kernels with weights, or additions to SRAM, that a switch may count or not."""
    design = random_design(random.Random(seed), 3)
    kernels = tuple(replace(kernel, sram_extra_bytes=200, skip_weight=False) for kernel in design.kernels)
    return replace(design, kernels=kernels)


def test_a_switch_that_makes_an_assignment_impossible_is_named_with_what_it_needs() -> None:
    """Solved as the original, which takes no PMUs for additions, with just enough of them."""
    used = replace(RIGHT, sram_extra_takes_no_pmus=True)
    named = 0
    for seed in range(40):
        design = tight(seed)
        for pmus in range(1, 12):
            few = with_pmus(design, pmus)
            try:
                solution = solve_design(few, DesignOptions(compatibility=used))
            except InfeasibleError:
                continue
            found = [one for one in corrections_of(solution) if one.switch == "sram_extra_takes_no_pmus"]
            if not found or not found[0].figure.startswith("PMUs"):
                continue
            assert len(found) == 1
            assert not found[0].is_applied
            assert found[0].value <= pmus < found[0].other_value, seed
            assert found[0].figure.endswith(f"needs, of {pmus} on the chip")
            with pytest.raises(InfeasibleError, match=rf"found \d+ PMUs that it needs against {pmus}$"):
                evaluate_design(solution.design, solution.decision, RIGHT)
            named += 1
            break
        if named == ENOUGH:
            break
    assert named == ENOUGH
