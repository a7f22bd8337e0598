"""Tables of core splits hold exactly the splits that no other one beats."""

from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit, core_table
from dfcompile.dfmodel_backend.machine.system import Machine
from dfcompile.dfmodel_backend.workload.kernel_work import KernelWork
from dfcompile.records import replace
from tests.examples import examples
from tests.unit.dfmodel_backend.graphs import cycles_of, machine

SIZES = st.one_of(st.integers(1, 40), st.sampled_from([97, 128, 1000]))


def chip_of(cores: int, lanes: int, stages: int) -> Machine:
    return replace(machine().machine, cores=cores, lanes_per_core=lanes, stages_per_core=stages)


@examples(100)
@given(SIZES, SIZES, SIZES, st.booleans(), st.integers(1, 30), st.integers(1, 4), st.integers(1, 4))
def test_table_is_the_pareto_front_of_every_split(
    rows: int, k: int, n: int, is_systolic: bool, cores: int, lanes_per_core: int, stages_per_core: int
) -> None:
    work = KernelWork("a", is_systolic, rows, k, n)
    every = [
        (lanes * stages, cycles_of(work, CoreSplit(lanes, stages), lanes_per_core, stages_per_core))
        for lanes in range(1, cores + 1)
        for stages in range(1, cores // lanes + 1)
    ]
    front = sorted(
        {
            (count, cycles)
            for count, cycles in every
            if not any(other != (count, cycles) and other[0] <= count and other[1] <= cycles for other in every)
        },
        reverse=True,
    )

    table = core_table(work, chip_of(cores, lanes_per_core, stages_per_core))

    assert list(zip(table.cores, table.cycles, strict=True)) == front
    for split, count, cycles in zip(table.splits, table.cores, table.cycles, strict=True):
        assert split.cores == count
        assert cycles_of(work, split, lanes_per_core, stages_per_core) == cycles
    assert table.least_area == min(count * cycles for count, cycles in front)
    assert {type(value) for value in (*table.cores, *table.cycles, table.least_area)} == {int}


def test_cycles_beyond_64_bits_are_exact() -> None:
    work = KernelWork("a", systolic=True, rows=2**30, k=2**30, n=2**30)

    table = core_table(work, chip_of(4, 1, 1))

    assert table.cycles == (2**88, -(-(2**30) // 3) * 2**60, 2**89, 2**90)
