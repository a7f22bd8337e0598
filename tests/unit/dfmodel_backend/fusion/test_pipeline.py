"""Graphs of all layers: pipeline stages of a whole network, and a network cut by hand."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.check.designs import check_design
from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.design_file.reading import parse_design
from dfcompile.dfmodel_backend.evaluate.designs import Decision, figures_of
from dfcompile.dfmodel_backend.fusion.fuse import DesignFusion
from dfcompile.dfmodel_backend.intra_chip.set_times import set_times
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.system import Link
from dfcompile.dfmodel_backend.milp import Outcome
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.errors import InfeasibleError
from dfcompile.generators.language_model_workloads import llm_forward
from dfcompile.generators.workload_kernels import design_text
from dfcompile.records import replace
from tests.examples import examples
from tests.unit.dfmodel_backend.designs import designs
from tests.unit.dfmodel_backend.pipelined_machine import MACHINE

FIRST_KERNELS = 9


def slowest_by_brute_force(model: DesignModel, slots: int, stages: int) -> float:
    """Try every assignment of kernels to configurations of stages."""
    count = len(model.shares)
    every = np.array([[mask >> k & 1 for k in range(count)] for mask in range(1 << count)], bool)
    times = set_times(model, every)
    best = float("inf")
    for place in itertools.product(range(slots * stages), repeat=count):
        if any(place[edge.source] > place[edge.target] for edge in model.edges):
            continue
        sums = [0.0] * stages
        for slot in range(slots * stages):
            mask = sum(1 << k for k in range(count) if place[k] == slot)
            sums[slot // slots] += times[mask] if mask else 0.0
        for stage in range(stages):
            if any(slot // slots == stage for slot in place):
                done = np.array([[slot // slots <= stage for slot in place]])
                sums[stage] += float(model.sends_ns(done)[0])
        if max(sums) < best and fits_dram(model, place, slots):
            best = max(sums)
    return best


def fits_dram(model: DesignModel, place: tuple[int, ...], slots: int) -> bool:
    used = sorted(set(place))
    configs = {share.kernel.id: used.index(slot) for share, slot in zip(model.shares, place, strict=True)}
    first = sorted({slot // slots for slot in used})
    stages = tuple(first.index(slot // slots) for slot in used)
    capacity = model.design.machine.dram_bytes
    return not capacity or figures_of(model, Decision({}, model.tiles, configs, stages)).dram_bytes <= capacity


@st.composite
def pipelines(draw: st.DrawFn) -> Design:
    drawn = draw(designs(4))
    inputs = draw(st.sampled_from([(0,), (0,), (0, 2), (2, 3)]))
    return replace(
        drawn,
        kernels=tuple(replace(kernel, num_input=draw(st.sampled_from(inputs))) for kernel in drawn.kernels),
        machine=replace(
            drawn.machine,
            chips=2,
            topology="r",
            links=(Link("r", 2, draw(st.sampled_from([0.5, 8.0])), "PP", 0.0),),
            dram_bytes=draw(st.sampled_from([0.0, 100.0, 300.0, 900.0])),
        ),
        execution=replace(drawn.execution, configurations=2, batch=replace(drawn.execution.batch, layers_in_graph=2)),
    )


@examples(40)
@given(pipelines(), st.sampled_from([1, 3]))
def test_stages_equal_brute_force(design: Design, tiles: int) -> None:
    if len(design.kernels) == 2:
        return  # as many configurations as kernels mean kernel by kernel
    model = DesignModel(design, {}, tiles, RIGHT)
    expected = slowest_by_brute_force(model, 2, 2)

    for solver in ("dp", "highs"):
        fusion = DesignFusion(design, DesignOptions(solver=solver))
        found = fusion.fuse(model)

        assert fusion.solver == solver
        assert (float("inf") if found is None else found.time_ns) == pytest.approx(expected, rel=1e-6), solver
        assert fusion.least_ns(model) <= expected * (1 + 1e-9)
        if found is not None:
            figures = figures_of(model, Decision({}, tiles, found.configs, found.stages))
            check_design(design, Decision({}, tiles, found.configs, found.stages), figures, RIGHT)
            assert figures.step_ns == pytest.approx(found.time_ns, rel=1e-9)


@examples(5)
@given(pipelines())
def test_stages_by_cbc(design: Design) -> None:
    model = DesignModel(design, {}, 2, RIGHT)
    expected = DesignFusion(design, DesignOptions()).fuse(model)

    found = DesignFusion(design, DesignOptions(solver="cbc")).fuse(model)

    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.time_ns == pytest.approx(expected.time_ns, rel=1e-6)


def test_the_dram_named_for_stages_is_enough() -> None:
    graph = design_text(llm_forward(hidden=4096, seq=2048, num_head=32, head_dim=128, word=2, layers=4))
    little = MACHINE.replace("num_layer: 24", "num_layer: 4").replace("num_layer_in_graph: 24", "num_layer_in_graph: 4")

    with pytest.raises(InfeasibleError, match=r"no 4 pipeline stages hold all kernels in 1000000 bytes") as caught:
        solve_design(parse_design(graph + little.replace("1099511600000.0", "1e6"), "x.txt"), DesignOptions())
    enough = re.findall(r"dram_cap of (\d+) is enough", str(caught.value))[0]

    solve_design(parse_design(graph + little.replace("1099511600000.0", enough), "x.txt"), DesignOptions())


def test_a_program_that_is_stopped_without_stages_hands_over_to_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dfcompile.dfmodel_backend.fusion.solvers.built_in.solve", lambda *_: Outcome.NOTHING)
    graph = llm_forward(hidden=64, seq=32, num_head=4, head_dim=16, word=2, layers=2)
    design = parse_design(design_text(graph) + MACHINE, "x.txt")
    few = tuple(edge for edge in design.edges if max(edge.source, edge.target) <= FIRST_KERNELS)
    design = replace(design, kernels=design.kernels[:FIRST_KERNELS], edges=few)
    model = DesignModel(design, {}, 1, RIGHT)
    fusion = DesignFusion(design, DesignOptions(solver="cbc"))

    found, best = fusion.fuse(model), DesignFusion(design, DesignOptions()).fuse(model)

    assert found is not None
    assert best is not None
    assert found.time_ns >= best.time_ns * (1 - 1e-9)
    assert not fusion.is_exact
