"""Cores and memory units of a set of kernels equal brute force over all lanes and stages of all kernels."""

import itertools
import math
import random

import numpy as np

from dfcompile.dfmodel_backend.compatibility import ORIGINAL, RIGHT
from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.system import LaneStage
from dfcompile.dfmodel_backend.workload.kernel_work import KernelWork
from dfcompile.records import replace
from tests.examples import rounds
from tests.unit.dfmodel_backend.graphs import cycles_of
from tests.unit.dfmodel_backend.pmu_designs import random_model, with_pmus


def every_split(model: DesignModel, kernel: int) -> list[CoreSplit]:
    cores = model.design.machine.cores
    stages = cores if model.shares[kernel].kernel.systolic else 1
    return [
        CoreSplit(lanes, count)
        for lanes in range(1, cores + 1)
        for count in range(1, stages + 1)
        if lanes * count <= cores
    ]


def cycles(model: DesignModel, kernel: int, split: CoreSplit) -> int:
    share, machine = model.shares[kernel], model.design.machine
    work = KernelWork("", share.kernel.systolic, share.work.rows, share.work.k, share.work.n)
    return cycles_of(work, split, machine.lanes_per_core, machine.stages_per_core)


def pmus(model: DesignModel, splits: dict[int, CoreSplit], parts: int) -> int:
    """Count the memory units of a configuration from the definitions [ko24]."""
    machine = model.design.machine
    assert machine.pmu is not None
    room, total = machine.pmu.pmu_bytes, 0
    first_reading: dict[int, int] = {}
    for number, edge in enumerate(model.edges):
        first_reading.setdefault(edge.target, number)
        writes, reads = edge.source in splits, edge.target in splits
        if not writes and not reads:
            continue
        tiles = edge.depth if writes and reads else 2
        shared = parts if writes and not reads else 1
        limits = [math.ceil(tiles * edge.size_bytes / shared / room)]
        if writes:
            share, split = model.shares[edge.source], splits[edge.source]
            limits.append(
                math.ceil(split.lanes * split.stages * machine.stages_per_core / share.work.k)
                if share.kernel.variant.is_gemm
                else split.lanes
            )
        if reads:
            reader, split = model.shares[edge.target].kernel, splits[edge.target]
            on_lanes = not reader.has_weight and (not reader.variant.is_gemm or first_reading[edge.target] == number)
            label = model.design.edges[number].label
            on_lanes = on_lanes if label is None else label is LaneStage.LANE
            limits.append(
                split.lanes if on_lanes else math.ceil(split.stages * machine.stages_per_core / machine.lanes_per_core)
            )
        total += max(limits)
    for kernel, split in splits.items():
        share, compatibility = model.shares[kernel], model.compatibility
        if share.kernel.has_weight and (compatibility.skipped_weights_take_pmus or not share.kernel.skip_weight):
            total += max(math.ceil(share.weight_bytes / parts / room), split.lanes)
        if not compatibility.sram_extra_takes_no_pmus:
            total += math.ceil(share.kernel.sram_extra_bytes / room)
    return total


def brute_force(model: DesignModel, inside: tuple[int, ...], parts: int) -> tuple[int, int] | None:
    """Return the least cycles and then the fewest units."""
    grid = model.design.machine.pmu
    assert grid is not None
    found = []
    for chosen in itertools.product(*(every_split(model, kernel) for kernel in inside)):
        splits = dict(zip(inside, chosen, strict=True))
        cores = sum(split.cores for split in chosen)
        if cores <= model.design.machine.cores:
            taken = pmus(model, splits, parts)
            if taken <= grid.pmus:
                found.append((max(cycles(model, kernel, splits[kernel]) for kernel in inside), cores + taken))
    return min(found, default=None)


def test_least_cycles_and_fewest_units_equal_brute_force() -> None:
    slower = 0
    seeds = range(rounds(250))
    for seed in seeds:
        rng = random.Random(seed)
        model = random_model(rng, 3, rng.choice([RIGHT, replace(ORIGINAL, sram_of_other_edges=False)]))
        kernels = range(len(model.shares))
        inside = tuple(sorted(rng.sample(kernels, rng.randint(1, len(kernels)))))
        parts = rng.choice([1, 1, 3]) if len(inside) == 1 else 1
        few = pmus(model, dict.fromkeys(inside, CoreSplit(1, 1)), parts) + rng.choice([-1, 0, 1, 2, 3, 5, 8, 20])
        model = DesignModel(with_pmus(model.design, few), model.sharding, model.tiles, model.compatibility)
        assert model.pmu is not None

        expected = brute_force(model, inside, parts)
        found = model.pmu.least_cycles(inside, parts)

        assert found == (None if expected is None else expected[0]), seed
        if found is not None and expected is not None:
            allocation = model.pmu.allocation(inside, parts, found)
            assert allocation is not None
            assert (allocation.cores + allocation.pmus, allocation.cycles) == (expected[1], found), seed
            assert allocation.pmus == pmus(model, allocation.splits, parts)
            slower += found > model.cycles(np.isin(kernels, inside)[None, :])[0]
    assert slower > len(seeds) / 9  # cases in which memory units, not cores, are the limit
