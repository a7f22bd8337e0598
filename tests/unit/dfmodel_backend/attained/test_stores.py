"""Where data lies while a configuration runs, on small graphs by hand."""

from collections.abc import Iterator

import pytest

from dfcompile.canonical_dag import CanonicalDag, DagBuilder, KernelTensor, TensorRole
from dfcompile.canonical_dag.dag import UNORDERED
from dfcompile.dfmodel_backend import Overlap, TaskModel, load_system
from dfcompile.dfmodel_backend.attained.part_schedules import PartWays
from dfcompile.dfmodel_backend.attained.stores import Place, StoreUse
from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration
from dfcompile.dfmodel_backend.machine.system import Amount
from dfcompile.records import replace
from dfcompile.scheduler import Schedule, ScheduleOptions


def readers_of_an_array(count: int, volume: int, distinct: int, order: str = "[0]") -> CanonicalDag:
    """Return tasks that each read an array in memory and write a result of one element."""
    builder = DagBuilder("readers")
    array = builder.add_memory(builder.add_scope("array"))
    scope = builder.add_scope("reader")
    results = builder.add_memory(builder.add_scope("results"))
    for task in builder.add_tasks(scope, count):
        builder.add_edge(array, task, volume, distinct=distinct, order=order)
        builder.add_edge(task, results, 1)
    return builder.finish()


def alone(
    dag: CanonicalDag, pes: int, sram_bytes: float, units: int = -1, gb_per_s: float = 300.0, least_cycles: int = 0
) -> TaskConfiguration:
    """Return the configuration of all units of a graph, or of some."""
    system = load_system(None).with_cores(pes)
    system = replace(system, accelerator=replace(system.accelerator, sram=Amount(sram_bytes)))
    system = replace(system, dram=replace(system.dram, bandwidth=Amount(gb_per_s)))
    options = ScheduleOptions(pes)
    model = TaskModel(dag, system, options, options, Overlap.PERFECT_OVERLAP, least_cycles=least_cycles)
    found = model.configuration((1 << model.units.count) - 1 if units < 0 else units)
    assert found is not None
    return found


def store(found: TaskConfiguration, name: str) -> StoreUse:
    return next(one for one in found.stores if one.name == name)


def test_array_that_is_read_again_stays_on_the_chip() -> None:
    held = store(alone(readers_of_an_array(1, 40, 10), 1, 1000.0), "array")
    away = store(alone(readers_of_an_array(1, 40, 10), 1, 39.0), "array")

    assert (held.place, held.dram_read_bytes) == (Place.PARTS, 40)
    assert (away.place, away.dram_read_bytes) == (Place.DRAM, 160)


def test_where_only_what_is_needed_is_moved_no_smaller_fifos_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[PartWays] = []

    def looked_for(ways: PartWays) -> Iterator[Schedule]:
        tried.append(ways)
        return iter(())

    monkeypatch.setattr(PartWays, "with_small_fifos", looked_for)
    again = readers_of_an_array(1, 10**6, 10)  # so often that DRAM takes longer, if it has to bring all of it

    held = alone(readers_of_an_array(1, 10**4, 10**4), 1, 10**6, gb_per_s=0.1)
    assert (held.bound_by, held.moves_too_much, tried) == ("memory", False, [])
    assert held.dram_bytes == held.residency.needed_bytes == 4 * (10**4 + 1)

    away = alone(again, 1, 39.0, gb_per_s=0.1)
    assert (away.bound_by, away.moves_too_much, len(tried)) == ("memory", True, 1)
    assert away.residency.needed_bytes == 4 * (10 + 1)


@pytest.mark.parametrize(
    ("pes", "least_cycles", "gb_per_s", "tried"),
    [(4, 9, 1e6, True), (4, 0, 1e6, False), (4, 10, 1e6, False), (1, 40, 1e6, False), (4, 9, 0.1, False)],
    ids=["longer than known to be needed", "unknown", "shortest", "shortest on one", "memory decides"],
)
def test_few_tasks_are_placed_otherwise_where_they_take_longer_than_known_to_be_needed(
    pes: int, least_cycles: int, gb_per_s: float, tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[PartWays] = []

    def looked_for(ways: PartWays) -> Iterator[Schedule]:
        asked.append(ways)
        return iter(())

    monkeypatch.setattr(PartWays, "with_small_fifos", looked_for)
    found = alone(readers_of_an_array(4, 10, 10), pes, 10**6, gb_per_s=gb_per_s, least_cycles=least_cycles)

    assert found.cycles == 40 // pes
    assert bool(asked) == tried


def test_tasks_that_read_the_same_share_a_stream() -> None:
    found = alone(readers_of_an_array(4, 10, 10), 4, 8.0)  # too little for the array, enough for one element

    assert store(found, "array").place is Place.PARTS
    assert store(found, "array").dram_read_bytes == 40
    assert found.sram_bytes == 4


def test_tasks_that_read_at_places_which_depend_on_data_share_nothing() -> None:
    """Each reads as much as a table has, but not in one order."""
    found = alone(readers_of_an_array(4, 10, 10, UNORDERED), 4, 8.0)

    assert store(found, "array").place is Place.DRAM
    assert store(found, "array").dram_read_bytes == 160


def test_tasks_that_run_after_others_share_nothing_with_them() -> None:
    found = alone(readers_of_an_array(4, 10, 10), 2, 8.0)

    assert store(found, "array").dram_read_bytes == 80
    assert len(found.residency.way) == 2


@pytest.mark.parametrize(("pes", "parts"), [(4, 160), (2, 80), (1, 40)])
def test_a_block_holds_the_part_that_it_reads(pes: int, parts: int) -> None:
    found = alone(readers_of_an_array(4, 30, 10), pes, 1000.0)
    array = store(found, "array")

    # The array has 10 elements: no more is held, however many tasks read all of it.
    assert found.sram_bytes == min(parts, 40)
    assert array.dram_read_bytes in (40, 40 * (4 // pes))


def test_what_nobody_needs_elsewhere_is_not_written() -> None:
    builder = DagBuilder("two")
    first, second = (builder.add_task(builder.add_scope(name)) for name in ("first", "second"))
    array = builder.add_memory(builder.add_scope("array"))
    builder.add_edge(first, array, 8)
    builder.add_edge(array, second, 8)
    dag = builder.finish()

    together, before = alone(dag, 1, 1000.0), alone(dag, 1, 1000.0, units=0b01)

    assert store(together, "array").dram_bytes == 0
    assert (together.sram_bytes, together.cycles) == (32, 16)
    assert store(before, "array").dram_write_bytes == 32
    small = store(alone(dag, 1, 31.0), "array")  # it does not fit: written and read again
    assert (small.place, small.leaves, small.dram_write_bytes, small.dram_read_bytes) == (Place.DRAM, False, 32, 32)


def three_in_a_row() -> CanonicalDag:
    """Return a task that writes an array of 8 elements, and two that read it."""
    builder = DagBuilder("row")
    first, second, third = (builder.add_task(builder.add_scope(name)) for name in ("first", "second", "third"))
    array, results = (builder.add_memory(builder.add_scope(name)) for name in ("array", "results"))
    builder.add_edge(first, array, 8)
    for task in (second, third):
        builder.add_edge(array, task, 8)
        builder.add_edge(task, results, 1)
    return builder.finish()


def test_what_is_held_and_needed_elsewhere_is_written_and_not_read() -> None:
    array = store(alone(three_in_a_row(), 1, 1000.0, units=0b011), "array")

    assert (array.place, array.leaves) == (Place.CHIP, True)
    assert (array.dram_write_bytes, array.dram_read_bytes) == (32, 0)


def test_room_is_made_when_the_last_task_has_read() -> None:
    """Two pairs of a writer and a reader run one after the other: SRAM holds one array at a time."""
    builder = DagBuilder("pairs")
    before = None
    for number in range(2):
        writer, reader = (builder.add_task(builder.add_scope(f"{name}{number}")) for name in ("writer", "reader"))
        array = builder.add_memory(builder.add_scope(f"array{number}"))
        builder.add_edge(writer, array, 8)
        builder.add_edge(array, reader, 8)
        if before is not None:
            builder.add_edge(before, writer, 8)
        before = builder.add_memory(builder.add_scope(f"result{number}"))
        builder.add_edge(reader, before, 8)
    found = alone(builder.finish(), 1, 32.0 + 32.0)

    assert [store(found, f"array{number}").place for number in range(2)] == [Place.CHIP, Place.CHIP]
    assert store(found, "result0").dram_bytes == 0
    assert found.sram_bytes == 64


def test_rows_that_tasks_read_at_a_time_come_once_for_all_of_them() -> None:
    """Four tasks on two elements read two rows: the first of each row brings it for the second."""
    builder = DagBuilder("rows")
    array = builder.add_memory(builder.add_scope("array"))
    builder.add_tensor(KernelTensor("array", 20, 4, TensorRole.INPUT))
    results = builder.add_memory(builder.add_scope("results"))
    tasks = builder.add_tasks(builder.add_scope("task"), 4)
    first = [0, 0, 10, 10]
    builder.add_edges([array] * 4, tasks, [30] * 4, order="3@0,10@1", distinct=[10] * 4, first=first)
    builder.add_edges(tasks, [results] * 4, [1] * 4)
    dag = builder.finish()
    held, shared = store(alone(dag, 2, 60.0), "array"), store(alone(dag, 2, 8.0), "array")

    assert (held.read, held.dram_read_bytes) == (480, 80)  # a row and an element at hand
    assert (shared.place, shared.dram_read_bytes) == (Place.PARTS, 240)  # an element: each row is brought three times


def test_a_row_stays_until_it_is_read_again() -> None:
    """On one element two tasks read a row, one after the other."""
    builder = DagBuilder("row")
    array = builder.add_memory(builder.add_scope("array"))
    results = builder.add_memory(builder.add_scope("results"))
    tasks = builder.add_tasks(builder.add_scope("task"), 2)
    builder.add_edges([array] * 2, tasks, [10] * 2, order="10@1", first=[20] * 2)
    builder.add_edges(tasks, [results] * 2, [1] * 2)
    stays, comes_again = (store(alone(builder.finish(), 1, room), "array") for room in (40.0, 39.0))

    assert (stays.dram_read_bytes, comes_again.dram_read_bytes) == (40, 80)


def test_what_is_fetched_of_an_array_is_what_is_read_of_it() -> None:
    builder = DagBuilder("parts")
    array = builder.add_memory(builder.add_scope("array"))
    results = builder.add_memory(builder.add_scope("results"))
    for name, elements in (("few", 4), ("all", 10)):
        task = builder.add_task(builder.add_scope(name))
        builder.add_edge(array, task, elements, distinct=elements, order="[0]")
        builder.add_edge(task, results, 1)
    found = store(alone(builder.finish(), 1, 1000.0, units=0b01), "array")

    assert (found.read, found.fetched, found.dram_read_bytes) == (16, 16, 16)


def test_what_several_tasks_of_a_block_read_is_held_once() -> None:
    array = store(alone(readers_of_an_array(4, 30, 10), 4, 40.0), "array")

    assert (array.place, array.dram_read_bytes) == (Place.PARTS, 40)


def test_streams_of_one_block_have_the_room_together() -> None:
    builder = DagBuilder("two")
    results = builder.add_memory(builder.add_scope("results"))
    for name in ("one", "other"):
        array = builder.add_memory(builder.add_scope(name))
        for task in builder.add_tasks(builder.add_scope(f"readers of {name}"), 2):
            builder.add_edge(array, task, 10, distinct=10, order="[0]")
            builder.add_edge(task, results, 1)
    dag = builder.finish()
    narrow, wide = (alone(dag, 4, room) for room in (7.0, 8.0))  # bytes; a stream of two readers needs four

    assert [store(narrow, name).place for name in ("one", "other")] == [Place.PARTS, Place.DRAM]
    assert [store(wide, name).place for name in ("one", "other")] == [Place.PARTS, Place.PARTS]
    assert (narrow.sram_bytes, wide.sram_bytes) == (4, 8)


def test_a_stream_whose_fifo_does_not_fit_goes_through_memory() -> None:
    """The direct way from fork to join has to hold all elements while the sum waits for the last of them."""
    builder = DagBuilder("join")
    memory = builder.add_memory(builder.add_scope("memory"))
    fork, total, spread, join = builder.add_tasks(builder.add_scope("task"), 4)
    for source, target, elements in (
        (memory, fork, 32),
        (fork, total, 32),
        (total, spread, 1),
        (spread, join, 32),
        (fork, join, 32),
    ):
        builder.add_edge(source, target, elements)
    dag = builder.finish()

    roomy = alone(dag, 4, 1000.0)
    tight = alone(dag, 4, roomy.fifo_bytes - 1)

    assert roomy.fifo_bytes > 100
    assert tight.fifo_bytes < roomy.fifo_bytes
    assert tight.dram_bytes > roomy.dram_bytes
