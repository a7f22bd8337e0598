"""Limits of designs and mappings to the last core and byte: what just keeps one is accepted, one less is not."""

import random
from functools import cache

import pytest

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend import DataflowGraph, TensorKind, check_mapping, map_graph
from dfcompile.dfmodel_backend.check.designs import check_design, check_placements
from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.evaluate.designs import Decision, DesignFigures, evaluate_design
from dfcompile.dfmodel_backend.intra_chip.graph_model import GraphModel
from dfcompile.dfmodel_backend.machine.system import Collective, Placement
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.placement import Cell, PlacedConfiguration, place_design
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution, solve_design
from dfcompile.dfmodel_backend.workload.design import Design, DesignEdge, DesignKernel, Dim
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from tests.unit.dfmodel_backend.designs import TEMPLATE
from tests.unit.dfmodel_backend.graphs import gemm, machine, tensor
from tests.unit.dfmodel_backend.pmu_designs import random_design

IN_ORDER = Decision({}, 1, {1: 0, 2: 1, 3: 1})


def product(number: int) -> DesignKernel:
    """A weight of 4 x 6 times an input of 6 x 8, of 2 bytes an element."""
    return DesignKernel(
        name=f"g{number}", id=number, pinned_config=-1, backward=False, systolic=True,
        variant=KernelVariant.GEMM_INPUT1_WEIGHT, outer=1, m=4, k=6, n=8, input_1_bytes=96, input_2_bytes=0,
        output_bytes=64, tiling=Dim.NONE, collective=Collective.NONE, collective_bytes=0,
        collective_2=Collective.NONE, memory_bytes=0, skip_weight=False, use_effective_stage=False, num_input=0,
        sram_extra_bytes=0, dram_extra_bytes=0,
    )  # fmt: skip


def design(cores: int = 4, kernels: int = 1, dram_bytes: float = 0.0) -> Design:
    """Products one after the other, in two configurations at most, on one chip whose cores multiply one by one."""
    link = replace(TEMPLATE.machine.links[0], chips=1)
    chip = replace(
        TEMPLATE.machine, chips=1, links=(link,), topology="r", cores=cores, lanes_per_core=1, stages_per_core=1,
        frequency_ghz=1.0, dram_bytes=dram_bytes,
    )  # fmt: skip
    batch = replace(TEMPLATE.execution.batch, layers=1, global_batch=1, micro_batch=1, sequence=8, tile=0)
    execution = replace(
        TEMPLATE.execution, batch=batch, kernel_by_kernel=False, configurations=2, compute_utilization=0.0
    )
    edges = tuple(DesignEdge(number, number + 1, zero_out=False) for number in range(1, kernels))
    return Design(tuple(map(product, range(1, kernels + 1))), edges, chip, execution)


def figures(found: Design, decision: Decision) -> DesignFigures:
    return evaluate_design(found, decision, RIGHT)


def test_a_time_is_that_of_the_cores_that_there_are() -> None:
    """4 x 8 x 6 multiplications: 48 cycles on four cores, 72 on three."""
    alone = Decision({}, 1, {1: 0})
    three, four = figures(design(3), alone), figures(design(4), alone)
    assert (three.steps[0].compute_ns, four.steps[0].compute_ns) == (72.0, 48.0)

    check_design(design(3), alone, three, RIGHT)
    check_design(design(4), alone, four, RIGHT)
    with pytest.raises(VerificationError, match=r"^configuration 0: its time takes 4\.0 cores against 3$"):
        check_design(design(3), alone, four, RIGHT)
    with pytest.raises(VerificationError, match=r"found 72\.0 cycles of compute, but its cores need less"):
        check_design(design(4), alone, three, RIGHT)


def test_no_connection_runs_back_by_one_configuration() -> None:
    three = design(kernels=3)
    backwards = Decision({}, 1, {1: 1, 2: 0, 3: 1})

    check_design(three, IN_ORDER, figures(three, IN_ORDER), RIGHT)
    with pytest.raises(VerificationError, match="connection 1 to 2: runs backwards"):
        check_design(three, backwards, figures(three, IN_ORDER), RIGHT)


def test_dram_holds_all_that_is_needed_at_a_time() -> None:
    """Three weights, and the tensor between the two configurations."""
    needed = 3 * 48 + 64

    for size, fits in ((needed, True), (needed - 1, False)):
        found = design(kernels=3, dram_bytes=float(size))
        if fits:
            check_design(found, IN_ORDER, figures(found, IN_ORDER), RIGHT)
        else:
            with pytest.raises(VerificationError, match=f"design: found {needed}.0 bytes of DRAM against {size}.0"):
                check_design(found, IN_ORDER, figures(found, IN_ORDER), RIGHT)


def test_weights_come_in_no_more_tiles_than_outputs_have_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """10 rows of 16 bytes of weights; SRAM that only parts of rows would fit."""
    graph = DataflowGraph.of(
        "one",
        (gemm("a", 10, 4, 1),),
        (
            tensor("x", TensorKind.INPUT, 16, "", "a"),
            tensor("w", TensorKind.WEIGHT, 160, "", "a"),
            tensor("y", TensorKind.OUTPUT, 40, "a"),
        ),
    )
    rows = map_graph(graph, machine(sram_bytes=32))
    assert rows.figures.configs[0].weight_tiles == 10
    check_mapping(graph, machine(sram_bytes=32), rows)

    monkeypatch.setattr(GraphModel, "most_weight_tiles", (1000,))
    parts = map_graph(graph, machine(sram_bytes=29))
    assert parts.figures.configs[0].weight_tiles > 10
    with pytest.raises(VerificationError, match=r"weights in \d+ tiles, which its kernels do not allow"):
        check_mapping(graph, machine(sram_bytes=29), parts)


@cache
def with_units() -> tuple[DesignSolution, tuple[PlacedConfiguration, ...]]:
    """A solved design with cores and memory units on a grid that has room for twice as many."""
    solution = solve_design(random_design(random.Random(3), 3), DesignOptions())
    machine = solution.design.machine
    assert machine.pmu is not None
    grid = replace(machine.pmu, x=6, y=machine.cores + machine.pmu.pmus, placement=Placement.ROWWISE)
    found = replace(solution, design=replace(solution.design, machine=replace(machine, pmu=grid)))
    return found, place_design(found.design, found.decision, found.figures, found.options.compatibility)


def test_cores_and_memory_units_are_no_more_than_there_are() -> None:
    solution, _ = with_units()
    machine, compatibility = solution.design.machine, solution.options.compatibility
    assert machine.pmu is not None
    units = [step.units for step in solution.figures.steps if step.units is not None]
    cores, pmus = max(one.cores for one in units), max(one.pmus for one in units)
    exact = replace(machine, cores=cores, pmu=replace(machine.pmu, pmus=pmus))

    def checked(cores: int, pmus: int) -> None:
        fewer = replace(exact, cores=cores, pmu=replace(machine.pmu, pmus=pmus)) if machine.pmu else exact
        check_design(
            replace(solution.design, machine=fewer), solution.decision, solution.figures, compatibility
        )  # fmt: skip

    checked(cores, pmus)
    with pytest.raises(VerificationError, match=rf"found {cores} cores and \d+ PMUs against {cores - 1} and {pmus}"):
        checked(cores - 1, pmus)
    with pytest.raises(VerificationError, match=rf"found \d+ cores and {pmus} PMUs against {cores} and {pmus - 1}"):
        checked(cores, pmus - 1)


def moved(placed: PlacedConfiguration, cell: Cell) -> PlacedConfiguration:
    """Put the first core of a configuration elsewhere, with its wires."""
    first, *others = placed.units.kernels
    old = first.cells[0]
    kernels = (replace(first, cells=(cell, *first.cells[1:])), *others)
    wires = tuple(
        replace(one, pairs=tuple((pmu, cell if pcu == old else pcu) for pmu, pcu in one.pairs))
        for one in placed.units.wires
    )
    return replace(placed, units=replace(placed.units, kernels=kernels, wires=wires))


def test_a_unit_has_a_cell_of_its_kind_for_itself() -> None:
    solution, placed = with_units()
    first, *others = placed
    grid = solution.design.machine.pmu
    assert grid is not None
    used = {cell for kernel in first.units.kernels for cell in kernel.cells}
    used |= {cell for tensor in first.units.tensors for cell in tensor.cells}
    free = [Cell(x, y) for y in range(grid.y) for x in range(grid.x) if Cell(x, y) not in used]
    core, memory = (next(cell for cell in free if (cell.x + cell.y) % 2 == kind) for kind in (1, 0))
    cells = [cell for kernel in first.units.kernels for cell in kernel.cells]

    check_placements(solution.design, solution.figures, (moved(first, core), *others))
    with pytest.raises(VerificationError, match=f"found a PCU at {memory.x}, {memory.y} against a cell of its kind"):
        check_placements(solution.design, solution.figures, (moved(first, memory), *others))
    with pytest.raises(VerificationError, match=f"found 2 units at {cells[-1].x}, {cells[-1].y} against 1"):
        check_placements(solution.design, solution.figures, (moved(first, cells[-1]), *others))
