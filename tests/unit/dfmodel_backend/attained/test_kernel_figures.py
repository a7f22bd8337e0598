"""What each kernel of a mapping does, by hand."""

from itertools import product
from math import prod

import pytest

from dfcompile.canonical_dag import DagBuilder
from dfcompile.dfmodel_backend import Overlap, TaskMapping, TaskModel, load_system
from dfcompile.dfmodel_backend.attained.mapping import map_tasks
from dfcompile.dfmodel_backend.inter_chip.conversions import TensorGroup
from dfcompile.dfmodel_backend.machine.cost import Roofs, roofs_of
from dfcompile.dfmodel_backend.machine.system import Collective, Dimension, Network
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions
from tests.unit.dfmodel_backend.inter_chip.test_chip_counts import networked


def mapped(overlap: Overlap) -> TaskMapping:
    """Two scopes read an array of 12 elements: one task reads all of it, the other 6 of them; both write a result."""
    builder = DagBuilder("two readers")
    array, result = (builder.add_memory(builder.add_scope(name)) for name in ("array", "result"))
    for name, read, written in (("all", 12, 3), ("half", 6, 6)):
        task = builder.add_task(builder.add_scope(name))
        builder.add_edge(array, task, read)
        builder.add_edge(task, result, written)
    options = ScheduleOptions(2)
    return map_tasks(TaskModel(builder.finish(), load_system(None).with_cores(2), options, options, overlap))


def test_what_kernels_read_together_is_shared_in_proportion() -> None:
    """12 elements of 4 bytes are read once: 32 bytes for the kernel that reads 12, 16 for the one that reads 6."""
    found = {one.name: one for one in mapped(Overlap.PERFECT_OVERLAP).kernels}

    assert {name: one.dram_bytes for name, one in found.items()} == {"all": 32 + 12, "half": 16 + 24}
    assert {name: one.chip_bytes for name, one in found.items()} == {"all": 60, "half": 48}
    assert {name: one.compute_ns for name, one in found.items()} == {"all": 12.0, "half": 6.0}
    assert found["all"].memory_ns == pytest.approx(44 / 300)
    assert {one.bound_by for one in found.values()} == {"compute"}


@pytest.mark.parametrize(
    ("overlap", "time_ns"), [(Overlap.PERFECT_OVERLAP, 12.0), (Overlap.NO_OVERLAP, 12.0 + 44 / 300)]
)
def test_times_are_joined_as_those_of_configurations(overlap: Overlap, time_ns: float) -> None:
    assert mapped(overlap).kernels[0].time_ns == pytest.approx(time_ns)


def test_roofs_of_one_chip() -> None:
    """Two cores of one multiply-adder each at 1 GHz, 300 GB/s."""
    assert roofs_of(load_system(None).with_cores(2)) == Roofs(4e9, 300e9, 0.0)


def test_a_chip_of_a_ring_gets_most_in_an_all_to_all() -> None:
    """Of 4 chips N^2 / (8 B) per byte of a message, of which each gets 3: 1.5 B; in an all-gather it gets B."""
    system = networked("r", 4).parts(4)[0]

    assert roofs_of(system).network_bytes_per_s == pytest.approx(1.5e9 * system.machine.links[0].gb_per_s)


def test_a_fully_connected_chip_gets_from_all_others_at_once() -> None:
    system = networked("fc", 4).parts(4)[0]

    assert roofs_of(system).network_bytes_per_s == pytest.approx(3e9 * system.machine.links[0].gb_per_s)


@pytest.mark.parametrize("dimensions", [1, 2])
def test_no_collective_brings_more_than_the_roof(dimensions: int) -> None:
    """Of a tensor of one byte, a chip of N gets (N - 1) / N, in an all-reduce twice, in an all-to-all an N-th of it."""
    fastest = 0.0
    for kinds in product(("r", "sw", "fc"), repeat=dimensions):
        for sizes in product((2, 4, 8), repeat=dimensions):
            links = tuple(Dimension(size, rate, 0.0) for size, rate in zip(sizes, (100.0, 10.0), strict=False))
            chips = prod(sizes)
            network = Network("_".join(kinds), links, 0.0, 0.0, 0.0, 0.0)
            system = replace(load_system(None), chips=chips, network=network)
            received = (chips - 1) / chips
            for collective, part in (
                (Collective.ALL_GATHER, received),
                (Collective.ALL_REDUCE, 2 * received),
                (Collective.ALL_TO_ALL, received / chips),
            ):
                per_ns = part / TensorGroup.of(system).cost(collective)[0]
                fastest = max(fastest, per_ns * 1e9 / roofs_of(system).network_bytes_per_s)

    assert fastest <= 1 + 1e-9
    assert fastest > 0.5
