"""Published designs: with the logged assignment the evaluator gives the logged figures."""

import msgspec
import pytest

from dfcompile.dfmodel_backend.compatibility import ORIGINAL, parse_compatibility
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.evaluate.designs import Decision, DesignFigures, evaluate_design
from dfcompile.dfmodel_backend.machine.cost import machine_cost_usd, machine_power_w
from dfcompile.dfmodel_backend.workload.design import Design, Dim
from tests.locations import DESIGNS

TOLERANCE = 1e-9


class Case(msgspec.Struct):
    cost_usd: float
    power_w: float
    flop: float
    utilization: float = 0.0
    final_s: float = 0.0
    config_ns: dict[int, float] = {}
    configs: dict[int, int] | str = ""
    sharding: dict[int, Dim] = {}
    tiles: int = 1
    stopped_early: bool = False
    compatibility: str = "dfmodel"


CASES = msgspec.json.decode((DESIGNS / "cases.json").read_bytes(), type=dict[str, Case])
TIMED = [name for name, case in CASES.items() if case.utilization]
EXACT = [name for name in TIMED if not CASES[name].stopped_early]


def figures_of(name: str) -> DesignFigures:
    case, design = CASES[name], read_design(DESIGNS / f"{name}.txt")
    decision = Decision(case.sharding, case.tiles, configs_of(case, design))
    return evaluate_design(design, decision, parse_compatibility(case.compatibility))


def configs_of(case: Case, design: Design) -> dict[int, int]:
    if isinstance(case.configs, dict):
        return case.configs
    return {k.id: 0 if case.configs == "all in one" else number for number, k in enumerate(design.kernels)}


@pytest.mark.parametrize("name", CASES)
def test_cost_power_and_flop(name: str) -> None:
    case, design = CASES[name], read_design(DESIGNS / f"{name}.txt")
    batch = design.execution.batch

    assert machine_cost_usd(design.machine, batch.copies, ORIGINAL) == pytest.approx(case.cost_usd, rel=TOLERANCE)
    assert machine_power_w(design.machine, batch.copies, ORIGINAL) == pytest.approx(case.power_w, rel=TOLERANCE)
    flop = sum(kernel.flop for kernel in design.kernels) * batch.layers * batch.global_batch
    assert flop == pytest.approx(case.flop, rel=TOLERANCE)


@pytest.mark.parametrize("name", EXACT)
def test_times_and_utilization_are_the_logged_ones(name: str) -> None:
    case, figures = CASES[name], figures_of(name)

    for number, time_ns in case.config_ns.items():
        assert figures.steps[number].time_ns == pytest.approx(time_ns, rel=TOLERANCE), number
    assert figures.batch_ns / 1e9 == pytest.approx(case.final_s, rel=TOLERANCE)
    assert figures.utilization == pytest.approx(case.utilization, rel=TOLERANCE)
    assert figures.flop == pytest.approx(case.flop, rel=TOLERANCE)


@pytest.mark.parametrize("name", [name for name in TIMED if CASES[name].stopped_early])
def test_times_are_at_most_those_of_logs_that_stopped_early(name: str) -> None:
    case, figures = CASES[name], figures_of(name)

    for number, time_ns in case.config_ns.items():
        assert figures.steps[number].time_ns <= time_ns * (1 + TOLERANCE), number
    assert figures.batch_ns / 1e9 <= case.final_s * (1 + TOLERANCE)
    assert figures.utilization >= case.utilization


def test_parts_of_the_times_are_the_logged_ones() -> None:
    """Of one log compute, memory, network and what waits in DRAM of each configuration are known."""
    figures = figures_of("llm_1T_sn30_3dtorus_dataflow")

    logged = [
        (2525127.1780041372, 276480.0, 407779.5555555556, 849346560.0),
        (2427259.3235596726, 51200.0, 0.0, 901775360.0),
        (2427413.3976378283, 68266.66666666667, 407779.5555555556, 849346560.0),
        (7282015.007722334, 68266.66666666667, 17066.666666666664, 744488960.0),
        (2427259.3235596726, 51200.0, 407779.5555555556, 692060160.0),
        (5049192.430054217, 208213.33333333334, 416312.88888889144, 639631360.0),
    ]
    found = [(step.compute_ns, step.memory_ns, step.network_ns, step.live_bytes) for step in figures.steps]
    assert [value for row in found for value in row] == pytest.approx(
        [value for row in logged for value in row], rel=TOLERANCE
    )
    assert figures.dram_bytes == pytest.approx(8766095360.0, rel=TOLERANCE)
