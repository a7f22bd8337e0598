"""Compute of sets of kernels on the cores of a chip: sets of as many kernels of each shape are worked out once."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.columns import Members
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
        wanted = [(model.tables[place], 1) for place in np.flatnonzero(row)]
        cycles = least_cycles(wanted, cores) if wanted else 0
        assert time_ns == (np.inf if cycles is None else cycles / design.machine.frequency_ghz)


def test_chain_of_equal_kernels_has_few_sets_to_work_out(monkeypatch: pytest.MonkeyPatch) -> None:
    design = read_design(DESIGNS / "mamba_scan_256k_rdu.txt")
    model = DesignModel(replace(design, execution=replace(design.execution, compute_utilization=0.0)), {}, 1)
    members = runs_of_chain(len(model.shares))
    asked = []

    def counted(wanted: list[tuple[CoreTable, int]], cores: int) -> int | None:
        asked.append(wanted)
        return least_cycles(wanted, cores)

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
