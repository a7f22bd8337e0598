"""Labellings of least cost: elimination and integer programs against all labellings; how integer programs end."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dfcompile.dfmodel_backend.sharding.designs
import dfcompile.dfmodel_backend.sharding.labelling
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.milp import MilpOptions, MilpSolver, Outcome
from dfcompile.dfmodel_backend.sharding.designs import shard
from dfcompile.dfmodel_backend.sharding.labelling import (
    Labelling,
    Levels,
    label_by_elimination,
    label_by_integer_programs,
)
from dfcompile.dfmodel_backend.workload.design import Dim
from dfcompile.errors import InfeasibleError, UserError
from tests.examples import examples
from tests.locations import DESIGNS

DIMS = (Dim.M, Dim.K, Dim.N, Dim.NONE)
LARGE = st.sampled_from([0, 0, 1, 2, 3, 768, 2048, 3 * 10**9])  # bytes of tensors, tiny ones beside huge ones
CASES = [DESIGNS / f"llm_{name}.txt" for name in ("13B_rdu_dp16", "175B_fwd_kbk_8x1", "1T_calculon_4_32_32")]


@st.composite
def labellings(draw: st.DrawFn, most: int = 5) -> Labelling:
    count = draw(st.integers(1, most))
    labels = {
        node: tuple(draw(st.lists(st.sampled_from(DIMS), min_size=1, max_size=3, unique=True))) for node in range(count)
    }
    alone = {(node, label): draw(costs()) for node in labels for label in labels[node] if draw(st.booleans())}
    between = {
        (first, second): {
            (one, other): draw(costs())
            for one in labels[first]
            for other in labels[second]
            if draw(st.booleans())
        }
        for first, second in itertools.combinations(labels, 2)
        if draw(st.integers(0, 2))
    }  # fmt: skip
    return Labelling(labels, alone, between, 3)


def costs() -> st.SearchStrategy[Levels]:
    return st.tuples(LARGE, LARGE, st.integers(0, 4))


def least(problem: Labelling) -> Levels:
    every = itertools.product(*problem.labels.values())
    return min(problem.cost(dict(zip(problem.labels, labels, strict=True))) for labels in every)


@given(labellings())
def test_elimination_is_as_good_as_the_best_of_all_labellings(problem: Labelling) -> None:
    found = label_by_elimination(problem)

    assert found is not None
    assert problem.cost(found) == least(problem)


@pytest.mark.parametrize("solver", MilpSolver)
def test_integer_programs_are_as_good_as_elimination_on_designs(
    solver: MilpSolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    designs = [read_design(path) for path in CASES]
    narrow = [shard(design, MilpOptions(solver)) for design in designs]
    monkeypatch.setattr(dfcompile.dfmodel_backend.sharding.labelling, "MOST_ENTRIES", 2)

    wide = [shard(design, MilpOptions(solver)) for design in designs]

    assert [found.communication_bytes for found in wide] == [found.communication_bytes for found in narrow]
    assert [found.sharding for found in wide] == [found.sharding for found in narrow]


@pytest.mark.parametrize("solver", MilpSolver)
@examples(40)
@given(problem=labellings(4))
def test_integer_programs_keep_what_earlier_levels_found(solver: MilpSolver, problem: Labelling) -> None:
    """A slack that solvers' tolerances exceed made a later level infeasible."""
    found = label_by_integer_programs(problem, MilpOptions(solver))

    assert problem.cost(found) == least(problem)


def test_a_graph_that_is_too_wide_is_not_eliminated(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = {(0, 1): {(Dim.M, Dim.N): (1,)}}
    problem = Labelling({0: (Dim.M, Dim.N), 1: (Dim.M, Dim.N)}, {}, pair, 1)
    monkeypatch.setattr(dfcompile.dfmodel_backend.sharding.labelling, "MOST_ENTRIES", 3)

    assert label_by_elimination(problem) is None


@pytest.mark.parametrize(
    ("outcomes", "kind", "message"),
    [
        ([Outcome.INFEASIBLE], InfeasibleError, "proves that no shardings go together"),
        ([Outcome.OPTIMAL, Outcome.INFEASIBLE], UserError, "at aim 2 of 2: numerical trouble"),
        ([Outcome.NOTHING], UserError, "proves no optimum within 7 nodes or 3 s"),
        ([Outcome.FEASIBLE], UserError, "proves no optimum within 7 nodes or 3 s"),
    ],
)
def test_no_solution_no_time_and_numerical_trouble_are_told_apart(
    outcomes: list[Outcome], kind: type[UserError], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = iter(outcomes)
    module = "dfcompile.dfmodel_backend.sharding.labelling.solve"
    monkeypatch.setattr(module, lambda *_: next(ends))
    problem = Labelling({0: (Dim.M,)}, {(0, Dim.M): (1, 1)}, {}, 2)

    with pytest.raises(kind, match=message):
        label_by_integer_programs(problem, MilpOptions(MilpSolver.HIGHS, 3.0, 7))


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A file whose sharding HiGHS took for infeasible at its fourth aim."""
    file = tmp_path / "tiny.txt"
    file.write_text(TINY, encoding="utf-8")
    return file


@pytest.mark.parametrize("solver", MilpSolver)
def test_a_tiny_design_has_a_sharding(solver: MilpSolver, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    design = read_design(tiny)
    narrow = shard(design, MilpOptions(solver))
    monkeypatch.setattr(dfcompile.dfmodel_backend.sharding.labelling, "MOST_ENTRIES", 2)

    assert shard(design, MilpOptions(solver)) == narrow


TINY = """
dataflow_graph {
  kernels { name: "k1" id: 1 config: -1 fwd_bwd: FWD type: SYSTOLIC gemm_input1_weight {
    outer: 1 M: 8 K: 32 N: 8 output_tensor_size: 64 weight_tensor_size: 256 tiling: N_TILING } }
  kernels { name: "k2" id: 2 config: -1 fwd_bwd: FWD type: SIMD elementwise_input1 {
    outer: 1 M: 64 N: 8 output_tensor_size: 512 tiling: N_TILING } }
  kernels { name: "k3" id: 3 config: -1 fwd_bwd: FWD type: SYSTOLIC gemm_input1_weight {
    outer: 1 M: 16 K: 32 N: 8 output_tensor_size: 128 weight_tensor_size: 512 tiling: N_TILING } }
  kernels { name: "k4" id: 4 config: -1 fwd_bwd: FWD type: SYSTOLIC gemm_input1_weight {
    outer: 1 M: 24 K: 32 N: 8 output_tensor_size: 192 weight_tensor_size: 768 tiling: N_TILING } }
  connections { startIdx: 1 endIdx: 2 id: 1 }
  connections { startIdx: 1 endIdx: 3 id: 2 }
  connections { startIdx: 2 endIdx: 3 id: 3 }
  connections { startIdx: 2 endIdx: 4 id: 4 }
  connections { startIdx: 3 endIdx: 4 id: 5 }
}
system {
  num_chip: 1
  accelerator { core: 8 systolic_width: 4 systolic_height: 3 sram_cap: 12000 freq: 0.9 }
  r_r_r { x: 1 y: 1 z: 1 link_bw_x: 0.3 link_bw_y: 0.3 link_bw_z: 0.3 par_x: "TP" par_y: "PP" par_z: "DP" }
  memory { dram_bw: 0.5 dram_cap: 8000 }
}
cost { accelerator_price: 33000 accelerator_power: 750 }
execution {
  llm { hidden_dim: 8 head_dim: 8 num_head: 1 seq_len: 8 num_layer: 3 global_batch_size: 8 micro_batch_size: 2
        num_layer_in_graph: 1 }
  execution_style: DATAFLOW num_config: 2 overlap: PERFECT_OVERLAP compute_util: 0.9 word: 1
}
"""
