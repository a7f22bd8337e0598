"""Every solver of designs finds the optimum of brute force, and the checker accepts it."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.check.designs import check_design
from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.intra_chip.set_times import set_times
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel, dram_need
from dfcompile.dfmodel_backend.kernel_sets import shape_of
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.sharding.designs import allowed_dims
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from dfcompile.dfmodel_backend.workload.design import Design, Dim
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace
from tests.examples import examples
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.designs import designs
from tests.unit.dfmodel_backend.solved_designs import RELATIVE, TOO_SLOW, solved_ns


def brute_force_ns(model: DesignModel) -> float:
    """Try every assignment of every kernel to every configuration."""
    design = model.design
    masks = shape_of(design).allowed
    count = len(design.kernels)
    position = {kernel.id: number for number, kernel in enumerate(design.kernels)}
    every = np.array([[mask >> k & 1 for k in range(count)] for mask in range(1 << count)], bool)
    times = set_times(model, every)
    capacity, kept = design.machine.dram_bytes, dram_need(model).total
    best = TOO_SLOW
    for place in itertools.product(range(len(masks)), repeat=count):
        if any(not masks[slot] >> k & 1 for k, slot in enumerate(place)):
            continue
        if any(place[position[edge.source]] > place[position[edge.target]] for edge in design.edges):
            continue
        sets = [sum(1 << k for k in range(count) if place[k] == slot) for slot in range(len(masks))]
        if capacity and kept + most_live(model, place) > capacity:
            continue
        best = min(best, sum(times[mask] for mask in sets if mask))
    return best


def most_live(model: DesignModel, place: tuple[int, ...]) -> float:
    most = 0.0
    for slot in set(place):
        inside = [share.kernel for share, own in zip(model.shares, place, strict=True) if own == slot]
        tiles = 1 if any(kernel.num_input for kernel in inside) else model.tiles
        waiting = [
            edge.size_bytes
            for edge in model.edges
            if place[edge.source] <= slot <= place[edge.target] and place[edge.source] != place[edge.target]
        ]
        most = max(most, tiles * sum(waiting))
    return most


def random_model(data: st.DataObject) -> DesignModel:
    drawn = data.draw(designs())
    inputs = data.draw(st.sampled_from([(0,), (0,), (0, 2), (0, 2, 3), (3,)]))
    design = replace(
        drawn, kernels=tuple(replace(kernel, num_input=data.draw(st.sampled_from(inputs))) for kernel in drawn.kernels)
    )
    sharding = {kernel.id: data.draw(st.sampled_from(allowed_dims(kernel))) for kernel in design.kernels}
    return DesignModel(design, sharding, data.draw(st.sampled_from([1, 2, 6])), RIGHT)


@examples(60)
@given(st.data())
def test_shortest_path_and_integer_programs_equal_brute_force(data: st.DataObject) -> None:
    model = random_model(data)
    expected = brute_force_ns(model)

    for solver in ("dp", "highs"):
        assert solved_ns(model, solver) == pytest.approx(expected, rel=RELATIVE), solver


@examples(10)
@given(st.data())
def test_cbc_agrees(data: st.DataObject) -> None:
    model = random_model(data)
    expected = solved_ns(model, "dp")

    assert solved_ns(model, "cbc") == pytest.approx(expected, rel=RELATIVE)


@examples(10)
@given(designs())
def test_integer_programs_are_proved(design: Design) -> None:
    """Where some tile count has no configurations, its integer program proves that there are none."""
    for solver in ("cbc", "highs"):
        try:
            found = solve_design(design, DesignOptions(solver=solver))
        except InfeasibleError:
            return

        assert found.optimal, solver
        assert found.solver == solver


@examples(30)
@given(st.data())
def test_intervals_are_never_better_and_state_a_bound(data: st.DataObject) -> None:
    design = data.draw(designs())
    try:
        best = solve_design(design, DesignOptions())
    except InfeasibleError:
        return
    try:
        found = solve_design(design, DesignOptions(solver="intervals"))
    except InfeasibleError:
        return
    check_design(best.design, best.decision, best.figures, RIGHT)

    assert best.optimal
    assert found.figures.batch_ns >= best.figures.batch_ns * (1 - RELATIVE)
    assert found.bound_ns <= best.figures.batch_ns * (1 + RELATIVE)
    if found.optimal:  # the only assignment, or as fast as the bound
        assert found.figures.batch_ns == pytest.approx(best.figures.batch_ns, rel=RELATIVE)
    else:
        assert not design.is_kernel_by_kernel
        assert found.gap > 0


def test_unsharded_dimension_is_none() -> None:
    design: Design = read_design(DESIGNS / "fft_h100_dgx1_1024.txt")
    found = solve_design(design, DesignOptions())

    assert set(found.decision.sharding.values()) == {Dim.NONE}


def test_kernels_of_no_pass_may_be_in_any_configuration() -> None:
    """Of three configurations the first is for the forward pass, the last for the backward one, the middle for both."""
    design = read_design(DESIGNS / "llm_175B_fwd_kbk_8x1.txt")
    passes = (False, None, True)
    design = replace(
        design,
        kernels=tuple(
            replace(kernel, id=number, backward=backward, pinned_config=-1)
            for number, (kernel, backward) in enumerate(zip(design.kernels, passes, strict=False), 1)
        ),
        edges=(),
        execution=replace(design.execution, kernel_by_kernel=False, configurations=3),
    )

    assert shape_of(design).allowed == (0b011, 0b111, 0b110)
