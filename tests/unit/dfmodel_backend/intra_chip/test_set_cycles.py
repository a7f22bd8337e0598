"""Compute of sets of kernels on the cores of a chip: sets of as many kernels of each shape are worked out once."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.columns import Members, Numbers
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.intra_chip import set_model
from dfcompile.dfmodel_backend.intra_chip.cores import CoreTable, least_cycles
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.records import replace
from tests.examples import examples
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.designs import designs


def runs_of_chain(kernels: int) -> Members:
    """Return every set of successive kernels."""
    rows = [[begin <= place < end for place in range(kernels)] for end in range(kernels + 1) for begin in range(end)]
    return np.array(rows, dtype=bool)


@examples(60)
@given(designs(5), st.integers(1, 6), st.sampled_from([1, 2, 3]))
def test_time_of_each_set_is_that_of_its_slowest_kernel_on_the_best_split(
    drawn: Design, cores: int, tiles: int
) -> None:
    execution = replace(drawn.execution, compute_utilization=0.0)
    design = replace(drawn, execution=execution, machine=replace(drawn.machine, cores=cores))
    model = DesignModel(design, {}, tiles)
    count = len(model.shares)
    members = np.array([[subset >> place & 1 for place in range(count)] for subset in range(1 << count)], dtype=bool)

    found = model.tile_compute_ns(members)

    for row, time_ns in zip(members, found, strict=True):
        cycles = cycles_of_slowest([model.tables[place] for place in np.flatnonzero(row)], cores)
        assert time_ns == cycles / design.machine.frequency_ghz


def cycles_of_slowest(tables: Sequence[CoreTable], cores: int) -> float:
    """Return the least cycles that each of some kernels can meet on cores of its own."""
    splits = itertools.product(*(zip(table.cores, table.cycles, strict=True) for table in tables))
    possible = (split for split in splits if sum(taken for taken, _ in split) <= cores)
    return min((max((cycles for _, cycles in split), default=0) for split in possible), default=np.inf)


def test_chain_of_equal_kernels_has_few_sets_to_work_out(monkeypatch: pytest.MonkeyPatch) -> None:
    design = read_design(DESIGNS / "mamba_scan_256k_rdu.txt")
    model = DesignModel(replace(design, execution=replace(design.execution, compute_utilization=0.0)), {}, 1)
    members = runs_of_chain(len(model.shares))
    asked: list[list[int]] = []

    def counted(tables: tuple[CoreTable, ...], counts: Numbers, cores: int) -> Numbers:
        asked.extend(counts.tolist())
        return least_cycles(tables, counts, cores)

    monkeypatch.setattr(set_model, "least_cycles", counted)
    model.tile_compute_ns(members)

    assert len(members) > 250
    assert len(asked) < len(members) / 2
    assert len(asked) == len(different_counts(model, members))


def different_counts(model: DesignModel, members: Members) -> set[Sequence[int]]:
    tables = list(dict.fromkeys(model.tables))
    return {
        tuple(sum(model.tables[place] == table for place in np.flatnonzero(row)) for table in tables)
        for row in members
    }  # fmt: skip
