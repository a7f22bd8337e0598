"""Units lie on the checkerboard as the walk goes, and every placement of a solved design passes the checker."""

import random
from functools import cache

import pytest

from dfcompile.dfmodel_backend.check.designs import check_placements, check_units_placed
from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT
from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit
from dfcompile.dfmodel_backend.intra_chip.memory_units import Allocation
from dfcompile.dfmodel_backend.machine.system import Collective, LaneStage, Link, Placement, PmuGrid
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.placement import (
    Border,
    Cell,
    PlacedConfiguration,
    PlacedUnits,
    Role,
    UnitGraph,
    exchange_dimensions,
    nearest_border,
    place_design,
    place_units,
    walk,
)
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution, solve_design
from dfcompile.errors import InfeasibleError, UserError, VerificationError
from dfcompile.records import replace
from tests.unit.dfmodel_backend.pmu_designs import random_design

ROWS = PmuGrid(pmus=6, pmu_bytes=64.0, x=4, y=3, placement=Placement.ROWWISE)
DIAGONALS = replace(ROWS, placement=Placement.DIAGONALWISE)

# Kernel 1 reads the outside's tensor 0 and weights, kernel 0 reads what 1 writes (tensor 1) and writes tensor 2.
CHAIN = UnitGraph(order=(1, 0), ends=((2, 1), (1, 0), (0, 2)), labels=(LaneStage.STAGE, LaneStage.LANE, LaneStage.LANE))
UNITS = Allocation(
    splits={0: CoreSplit(2, 1), 1: CoreSplit(1, 2)}, edges={0: 2, 1: 2, 2: 1}, weights={1: 1}, extras={}, cycles=1
)


def cells_of(placed: PlacedUnits) -> dict[str, list[tuple[int, int]]]:
    found = {f"kernel {one.kernel}": [(cell.x, cell.y) for cell in one.cells] for one in placed.kernels}
    found |= {f"{one.role} {one.number}": [(cell.x, cell.y) for cell in one.cells] for one in placed.tensors}
    return found


def test_walks_take_rows_or_diagonals() -> None:
    small = replace(ROWS, x=3, y=2)

    assert [tuple(cell) for cell in walk(small)] == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
    diagonals = [tuple(cell) for cell in walk(replace(small, placement=Placement.DIAGONALWISE))]
    assert diagonals == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]


def test_rowwise_units_by_hand() -> None:
    # M P M P
    # P M P M
    # M P M P
    assert cells_of(place_units(ROWS, CHAIN, UNITS)) == {
        "kernel 1": [(1, 0), (3, 0)],
        "kernel 0": [(0, 1), (2, 1)],
        "weights 1": [(0, 0)],
        "tensor 0": [(2, 0), (1, 1)],
        "tensor 1": [(3, 1), (0, 2)],
        "tensor 2": [(2, 2)],
    }


def test_diagonalwise_units_by_hand() -> None:
    assert cells_of(place_units(DIAGONALS, CHAIN, UNITS)) == {
        "kernel 1": [(0, 1), (1, 0)],
        "kernel 0": [(1, 2), (2, 1)],
        "weights 1": [(0, 0)],
        "tensor 0": [(0, 2), (1, 1)],
        "tensor 1": [(2, 0), (2, 2)],
        "tensor 2": [(3, 1)],
    }


def test_wires_by_hand() -> None:
    placed = place_units(ROWS, CHAIN, UNITS)
    wires = {
        (str(placed.tensors[one.tensor].role), placed.tensors[one.tensor].number, one.is_write): [
            (tuple(pmu), tuple(pcu)) for pmu, pcu in one.pairs
        ]
        for one in placed.wires
    }

    assert wires == {
        ("weights", 1, False): [((0, 0), (1, 0))],  # rows: the head of the one lane
        ("tensor", 0, False): [((2, 0), (1, 0)), ((1, 1), (3, 0))],  # columns: each stage
        ("tensor", 1, True): [((3, 1), (3, 0)), ((0, 2), (3, 0))],  # out of the end of the lane
        ("tensor", 1, False): [((3, 1), (0, 1)), ((0, 2), (2, 1))],  # rows: each lane
        ("tensor", 2, True): [((2, 2), (0, 1)), ((2, 2), (2, 1))],
    }


def test_too_few_cells_are_named() -> None:
    with pytest.raises(UserError, match=r"grid of 3 x 1: found 1 cells for PCUs against 4 that are used"):
        place_units(replace(ROWS, x=3, y=1), CHAIN, UNITS)
    with pytest.raises(UserError, match=r"grid of 3 x 3: found 5 cells for PMUs against 6 that are used"):
        place_units(replace(ROWS, x=3, y=3), CHAIN, UNITS)


def test_nearest_border_breaks_ties_left_right_top_bottom() -> None:
    grid = replace(ROWS, x=5, y=5)

    cells = ((2, 2), (1, 1), (3, 1), (2, 0), (2, 4), (4, 3))
    assert [nearest_border(Cell(*cell), grid) for cell in cells] == [
        *(Border.LEFT, Border.LEFT, Border.RIGHT, Border.TOP, Border.BOTTOM, Border.RIGHT),
    ]


def on_grid(solution: DesignSolution, rng: random.Random) -> DesignSolution:
    """Return the solution on a grid that has room for all its units."""
    pmu = solution.design.machine.pmu
    assert pmu is not None
    placement = rng.choice([Placement.ROWWISE, Placement.DIAGONALWISE])
    x = rng.randint(1, 6)
    grid = replace(pmu, x=x, y=-(-2 * (solution.design.machine.cores + pmu.pmus) // x) + 1, placement=placement)
    design = replace(solution.design, machine=replace(solution.design.machine, pmu=grid))
    return replace(solution, design=design)


def placed_again(solution: DesignSolution) -> tuple[PlacedConfiguration, ...]:
    return place_design(solution.design, solution.decision, solution.figures, solution.options.compatibility)


@cache
def solved() -> list[tuple[DesignSolution, tuple[PlacedConfiguration, ...]]]:
    found = []
    for seed in range(40):
        rng = random.Random(seed)
        try:
            options = DesignOptions(compatibility=rng.choice([RIGHT, ORIGINAL]))
            solution = on_grid(solve_design(random_design(rng, 4), options), rng)
        except InfeasibleError:
            continue
        found.append((solution, placed_again(solution)))
    return found


def test_placements_of_solved_designs_pass_the_checker_and_are_the_same_twice() -> None:
    several = 0
    for solution, placed in solved():
        check_placements(solution.design, solution.figures, placed)
        assert placed == placed_again(solution)
        assert [one.configuration for one in placed] == [
            number for number, step in enumerate(solution.figures.steps) if step.kernels
        ]
        for one in placed:
            units = solution.figures.steps[one.configuration].units
            assert units is not None
            assert sum(len(kernel.cells) for kernel in one.units.kernels) == units.cores
            assert sum(len(tensor.cells) for tensor in one.units.tensors) == units.pmus
        several += len(placed) > 1
    assert several > 2


def test_links_of_a_ring_of_chips_go_left_and_right() -> None:
    exchanged = 0
    for _, placed in solved():
        for one in placed:
            for link in one.links:
                if link.dimension is not None:
                    exchanged += 1
                    assert link.dimension == 0
                    assert link.border is (Border.LEFT if link.is_incoming else Border.RIGHT)
    assert exchanged > 0


def test_collectives_go_over_the_dimensions_of_their_group() -> None:
    design = random_design(random.Random(0))
    links = (Link("r", 4, 1.0, "TP", 0.0), Link("r", 2, 1.0, "DP", 0.0))
    design = replace(design, machine=replace(design.machine, links=links))

    assert exchange_dimensions(design, Collective.ALL_REDUCE) == (0,)
    assert exchange_dimensions(design, Collective.ALL_REDUCE_PERIODIC) == (1,)
    alone = replace(design, machine=replace(design.machine, links=(replace(links[0], chips=1), links[1])))
    assert exchange_dimensions(alone, Collective.ALL_GATHER) == ()


def test_a_design_without_a_grid_is_not_placed() -> None:
    solution, _ = solved()[0]
    pmu = solution.design.machine.pmu
    assert pmu is not None
    machine = replace(solution.design.machine, pmu=replace(pmu, placement=Placement.NONE))

    assert place_design(replace(solution.design, machine=machine), solution.decision, solution.figures) == ()


def changed(placed: PlacedUnits, what: str) -> PlacedUnits:
    """Return units with one mistake."""
    first, second = placed.kernels
    tensor = placed.tensors[0]
    match what:
        case "twice":
            return replace(placed, kernels=(first, replace(second, cells=first.cells)))
        case "kind":
            return replace(placed, kernels=(replace(first, cells=(Cell(0, 0), first.cells[1])), second))
        case "outside":
            return replace(placed, kernels=(replace(first, cells=(Cell(9, 0), first.cells[1])), second))
        case "fewer":
            return replace(placed, tensors=(replace(tensor, cells=()), *placed.tensors[1:]))
        case "split":
            return replace(placed, kernels=(replace(first, split=CoreSplit(2, 1)), second))
        case "role":
            return replace(placed, tensors=(replace(tensor, role=Role.ADDED), *placed.tensors[1:]))
        case "wire":
            return replace(placed, wires=placed.wires[1:])
        case _:
            wires = placed.wires[1]
            return replace(placed, wires=(placed.wires[0], replace(wires, pairs=wires.pairs[:1]), *placed.wires[2:]))


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("twice", "found 2 units at 1, 0 against 1"),
        ("kind", "found a PCU at 0, 0 against a cell of its kind"),
        ("outside", "found a PCU at 9, 0 against a cell of its kind"),
        ("fewer", "PMUs: found other tensors or counts"),
        ("role", "PMUs: found other tensors or counts"),
        ("split", "PCUs: found other kernels, splits or counts"),
        ("wire", "wires: found other tensors and kernels"),
        ("pair", "wires of tensor 1: found other units than all of its own"),
    ],
)
def test_checker_refuses_one_mistake(what: str, message: str) -> None:
    placed = place_units(ROWS, CHAIN, UNITS)
    check_units_placed(ROWS, CHAIN.ends, UNITS, placed, "x")

    with pytest.raises(VerificationError, match=f"^x: {message}"):
        check_units_placed(ROWS, CHAIN.ends, UNITS, changed(placed, what), "x")


def test_checker_refuses_a_crossing_tensor_without_links() -> None:
    refused = 0
    for solution, placed in solved():
        if any(link.dimension is None for link in placed[0].links):
            without = (replace(placed[0], links=()), *placed[1:])
            with pytest.raises(VerificationError, match=r"found PMUs without a link (in|out) against one for each"):
                check_placements(solution.design, solution.figures, without)
            refused += 1
    assert refused > 5
