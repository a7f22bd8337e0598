"""The sharding that is found against every sharding, each with its own fusion."""

import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend import Mapping, MappingOptions, Overlap, System, TensorKind, map_graph
from dfcompile.dfmodel_backend.machine.system import Amount
from dfcompile.dfmodel_backend.options import NS_PER_S
from dfcompile.dfmodel_backend.sharding.graphs import SharedGraph, SplitGraph
from dfcompile.dfmodel_backend.solve.sharding_search import ShardingSearch, ShardingSums
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace
from tests.examples import examples
from tests.unit.dfmodel_backend.graphs import floats, split_gemm
from tests.unit.dfmodel_backend.inter_chip.test_chip_counts import networked
from tests.unit.dfmodel_backend.sharding.element_simulator import every_choice
from tests.unit.dfmodel_backend.sharding.tiny_programs import random_program, random_system

RELATIVE = 1e-9


def search(graph: DataflowGraph, system: System, options: MappingOptions) -> ShardingSearch:
    def mapped(share: SharedGraph) -> Mapping:
        return map_graph(share.graph, system, options)

    return ShardingSearch(graph, system, options, mapped)


def least_of_all(split: SplitGraph, system: System, options: MappingOptions) -> tuple[float, float, int] | None:
    """Return time, bytes of messages and splits of the best of all shardings."""
    found = []
    for sharding in every_choice(split):
        share = split.shared(sharding)
        try:
            time_s = map_graph(share.graph, system, options).figures.time_s
        except InfeasibleError:
            continue
        splits = sum(number >= 0 for choice in sharding.values() for number in choice)
        found.append((time_s, share.network_bytes, splits))
    least = min((time_s for time_s, _, _ in found), default=0.0)
    return min((one for one in found if one[0] <= least * (1 + RELATIVE)), key=lambda one: one[1:], default=None)


@examples(15)
@given(st.integers(0, 2**40), st.sampled_from(list(Overlap)), st.sampled_from([0, 0, 150, 300]))
def test_no_sharding_is_faster(seed: int, overlap: Overlap, sram_bytes: int) -> None:
    rng = random.Random(seed)
    program, system = random_program(rng, 3), random_system(rng)
    system = replace(system, accelerator=replace(system.accelerator, sram=Amount(sram_bytes)))
    options = MappingOptions(overlap=overlap)
    split = SplitGraph(program.graph, system)
    assume(math.prod(len(choices) for choices in split.choices.values()) <= 200)
    best = least_of_all(split, system, options)
    kept = search(program.graph, system, options)
    found, bound_s, refused = kept.best()

    if best is None:
        assert found is None
        assert refused is not None
        return
    assert found is not None
    assert math.isclose(found.mapping.figures.time_s, best[0], rel_tol=RELATIVE)
    assert math.isclose(bound_s, best[0], rel_tol=RELATIVE)  # proved
    assert kept.bound_s <= best[0] * (1 + RELATIVE)


@examples(30)
@given(st.integers(0, 2**40), st.sampled_from(list(Overlap)), st.sampled_from([0.0, 0.5]))
def test_no_mapping_beats_the_bound_of_its_sharding(seed: int, overlap: Overlap, utilization: float) -> None:
    rng = random.Random(seed)
    program, system = random_program(rng, 5), random_system(rng)
    options = MappingOptions(overlap=overlap, compute_utilization=utilization)
    split = SplitGraph(program.graph, system)
    sums = ShardingSums(split, system, options)
    for _ in range(4):
        sharding = {name: rng.choice(choices) for name, choices in split.choices.items()}
        chosen = tuple(sharding[kernel.name] for kernel in split.graph.kernels)
        least_s = sums.least_ns(sums.of_all(chosen), len(chosen)) / NS_PER_S
        mapping = map_graph(split.shared(sharding).graph, system, options)

        assert sums.bound_s <= least_s * (1 + RELATIVE)
        assert least_s <= mapping.figures.time_s * (1 + RELATIVE)


def test_of_equally_fast_shardings_the_one_with_fewer_bytes_and_fewer_splits_is_taken() -> None:
    """The weight takes all the time: by its rows nothing is exchanged, by the contraction the result is."""
    graph = DataflowGraph.of(
        "one",
        (split_gemm("a", 8, 8, 4),),
        (
            floats("x", TensorKind.WEIGHT, 32, "", "a"),
            floats("w", TensorKind.WEIGHT, 64, "", "a"),
            floats("y", TensorKind.OUTPUT, 32, "a"),
        ),
    )
    system = networked("r", 2).parts(2)[0]
    found, _, _ = search(graph, system, MappingOptions()).best()

    assert found is not None
    assert found.share.sharding == (("a", (0,)),)
    assert found.share.network_bytes == 0


def test_a_bound_that_is_known_is_not_looked_below() -> None:
    graph = DataflowGraph.of("one", (split_gemm("a", 8, 8, 4),), (floats("w", TensorKind.WEIGHT, 64, "", "a"),))
    kept = search(graph, networked("r", 2).parts(2)[0], MappingOptions())

    found, bound_s, _ = kept.best(below_s=1e-12)
    assert found is None
    assert bound_s >= 1e-12


def test_what_is_not_looked_at_bounds_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without nodes nothing is proved but that kernels and tensors take what they must."""
    monkeypatch.setattr("dfcompile.dfmodel_backend.solve.sharding_search.NODES", 0)
    graph = DataflowGraph.of(
        "one",
        (split_gemm("a", 3, 5, 7),),
        (
            floats("x", TensorKind.INPUT, 35, "", "a"),
            floats("w", TensorKind.WEIGHT, 15, "", "a"),
            floats("y", TensorKind.OUTPUT, 21, "a"),
        ),
    )
    kept = search(graph, networked("r", 2).parts(2)[0], MappingOptions(overlap=Overlap.NO_OVERLAP))
    found, bound_s, _ = kept.best()

    assert found is not None
    assert kept.bound_s < found.mapping.figures.time_s
    assert bound_s == kept.bound_s
