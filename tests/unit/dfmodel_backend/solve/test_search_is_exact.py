"""The pruned search finds what trying every choice finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT, Compatibility
from dfcompile.dfmodel_backend.evaluate.designs import batch_time_ns
from dfcompile.dfmodel_backend.fusion.fuse import DesignFusion
from dfcompile.dfmodel_backend.inter_chip.degrees import degree_choices, micro_batch_choices, tile_counts
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.system import Collective, Link
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.sharding.designs import candidate_shardings
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from dfcompile.dfmodel_backend.workload.design import Design, Dim
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace
from tests.examples import examples
from tests.unit.dfmodel_backend.designs import designs


@st.composite
def open_designs(draw: st.DrawFn) -> Design:
    """Designs on 4 or 8 chips whose degrees, micro-batch and tiles are open; of one layer or of all."""
    drawn = draw(designs(4))
    bandwidth = st.sampled_from([0.5, 8.0])
    order = draw(st.sampled_from([("TP", "PP", "DP"), ("TP", "PP"), ("TP", "DP")]))
    shapes = {3: "r_sw_sw", 2: "r_r"}[len(order)].split("_")
    links = tuple(Link(kind, 0, draw(bandwidth), name, 0.0) for kind, name in zip(shapes, order, strict=True))
    kernels = tuple(
        replace(
            kernel,
            num_input=draw(st.sampled_from([0, 0, 0, 2])),
            tiling=draw(st.sampled_from([Dim.N, Dim.N, Dim.M, Dim.NONE] + [Dim.K] * kernel.variant.is_gemm)),
            collective=draw(st.sampled_from([Collective.NONE, Collective.NONE, Collective.ALL_REDUCE_PERIODIC])),
        )
        for kernel in drawn.kernels
    )
    batch = replace(drawn.execution.batch, micro_batch=0, tile=0, layers_in_graph=draw(st.sampled_from([1, 1, 2])))
    batch = replace(batch, layers=draw(st.integers(1, 4)))
    machine = replace(drawn.machine, chips=draw(st.sampled_from([4, 8])), topology="_".join(shapes), links=links)
    return replace(drawn, kernels=kernels, machine=machine, execution=replace(drawn.execution, batch=batch))


def every_batch_ns(design: Design, compatibility: Compatibility) -> list[tuple[float, int, int]]:
    """Return time, tiles and number of every choice that fits, each from a model of its own."""
    options = DesignOptions(compatibility=compatibility)
    fusion = DesignFusion(design, options)
    found = []
    choices = [
        (chosen, inter_chip.sharding)
        for degrees in degree_choices(design, compatibility)
        for chosen in micro_batch_choices(degrees, compatibility)
        for inter_chip in candidate_shardings(chosen, options.sharding_objective, compatibility)
    ]
    for order, (chosen, sharding) in enumerate(choices):
        for tiles in tile_counts(chosen, compatibility):
            model = DesignModel(chosen, sharding, tiles, compatibility)
            fused = fusion.fuse(model)
            if fused is not None:
                found.append((batch_time_ns(model, fused.time_ns), tiles, order))
    return found


@examples(30)
@given(open_designs(), st.sampled_from([RIGHT, ORIGINAL]))
def test_pruned_search_equals_every_choice(design: Design, compatibility: Compatibility) -> None:
    try:
        every = every_batch_ns(design, compatibility)
    except InfeasibleError:
        return
    if not every:
        with pytest.raises(InfeasibleError):
            solve_design(design, DesignOptions(compatibility=compatibility))
        return

    solution = solve_design(design, DesignOptions(compatibility=compatibility))

    least = min(time_ns for time_ns, _, _ in every)
    assert solution.figures.batch_ns == pytest.approx(least, rel=1e-9)
    fewest_tiles = min(tiles for time_ns, tiles, _ in every if time_ns <= least * (1 + 1e-12))
    assert solution.decision.tiles == fewest_tiles


@examples(30)
@given(open_designs(), st.integers(1, 4))
def test_models_of_other_groups_are_those_built_anew(design: Design, tiles: int) -> None:
    try:
        degrees = degree_choices(design, ORIGINAL)
    except InfeasibleError:
        return
    choices = [chosen for one in degrees for chosen in micro_batch_choices(one, RIGHT)]
    alone = np.eye(len(design.kernels), dtype=bool)
    for compatibility in (RIGHT, ORIGINAL):
        first = {
            DesignModel(one, {}, tiles).degrees.tensor: DesignModel(one, {}, tiles, compatibility) for one in choices
        }
        for chosen in choices:
            anew = DesignModel(chosen, {}, tiles, compatibility)
            copied = DesignModel(chosen, {}, tiles, compatibility, first[anew.degrees.tensor])

            assert copied.shares == anew.shares
            assert copied.least_ns() == pytest.approx(anew.least_ns(), rel=1e-12)
            if alone.sum() <= design.machine.cores:
                np.testing.assert_allclose(copied.steps(alone).time_ns, anew.steps(alone).time_ns, rtol=1e-12)
