"""Chosen configurations are the best of all, on random canonical DAGs and machines; the checker accepts them."""

from collections.abc import Iterator
from functools import cache
from math import inf

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, parse_dag
from dfcompile.dfmodel_backend import Exchange, Overlap, System, TaskModel, load_system
from dfcompile.dfmodel_backend.attained import search, task_model
from dfcompile.dfmodel_backend.attained.mapping import map_tasks
from dfcompile.dfmodel_backend.attained.search import fastest_chain
from dfcompile.dfmodel_backend.attained.task_model import ChipsInUse, Chosen, TaskConfiguration
from dfcompile.dfmodel_backend.check.task_mappings import check_task_mapping
from dfcompile.dfmodel_backend.machine.system import Amount
from dfcompile.dfmodel_backend.workload.graph import ExchangeKind
from dfcompile.errors import InfeasibleError
from dfcompile.options import Timing
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.streaming_schedule import timed_schedule
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags

CANONICAL = load_system(None)
PART = load_system("sn30").parts(2)[0]
SMALL = DagShape(max_scopes=5, max_members=2)
FEW_UNITS = 9  # 3^9 configurations at most, of which all are looked at: so what is found is proved to be the best


def machine(pes: int, sram_bytes: float, gb_per_s: float) -> System:
    """Return a canonical chip with other memories."""
    system = CANONICAL.with_cores(pes)
    return replace(
        system,
        accelerator=replace(system.accelerator, sram=Amount(sram_bytes)),
        dram=replace(system.dram, bandwidth=Amount(gb_per_s)),
    )


machines = st.builds(
    machine, st.integers(1, 6), st.sampled_from([0.0, 200.0, 400.0, 1000.0]), st.sampled_from([0.5, 4.0, 64.0])
)


def model_of(dag: CanonicalDag, system: System, overlap: Overlap = Overlap.PERFECT_OVERLAP) -> TaskModel:
    options = ScheduleOptions(system.accelerator.cores)
    return TaskModel(dag, system, options, options, overlap)


def next_sets(model: TaskModel, done: int) -> Iterator[int]:
    """Yield every set of units that may run after others."""
    for units in range(1, 1 << model.units.count):
        after = done | units
        members = model.units.members(units)
        names = {model.units.names[unit] for unit in members}
        apart = () if model.chips is None else model.chips.apart
        if units & done or any(names.issuperset(pair) for pair in apart):
            continue
        if not any(model.units.predecessors[unit] & ~after for unit in members):
            yield units


def least_ns(model: TaskModel) -> float:
    """Return the least time of all ways to put units into configurations, one after another."""

    @cache
    def time_ns(units: int) -> float:
        found = model.configuration(units)
        return inf if found is None else found.time_ns

    @cache
    def rest_ns(done: int) -> float:
        if done == (1 << model.units.count) - 1:
            return 0.0
        return min(time_ns(units) + rest_ns(done | units) for units in next_sets(model, done))

    return rest_ns(0)


@examples(30)
@given(canonical_dags(SMALL), machines, st.sampled_from(list(Overlap)))
def test_no_other_chain_is_faster(dag: CanonicalDag, system: System, overlap: Overlap) -> None:
    model = model_of(dag, system, overlap)
    assume(model.units.count <= FEW_UNITS)
    expected_ns = least_ns(model)
    if expected_ns == inf:
        with pytest.raises(InfeasibleError, match="FIFOs"):
            map_tasks(model)
        return

    found = map_tasks(model)

    assert found.time_s * 1e9 == pytest.approx(expected_ns, rel=1e-9)
    assert found.is_best_chain
    assert found.bound_time_s <= found.time_s * (1 + 1e-12)
    check_task_mapping(dag, system, overlap, found)


def test_that_a_chain_is_the_best_is_claimed_only_where_all_were_looked_at() -> None:
    """Seven pairs of tasks that know nothing of each other: 6^7 configurations, of which some are looked at."""
    lines = [f"task a{pair}\ntask b{pair}\nedge a{pair} -> b{pair} volume={pair + 1}\n" for pair in range(7)]
    model = model_of(
        parse_dag(f"dfcompile-dag/1 pairs\n{''.join(lines)}"), machine(6, 1000.0, 64.0), Overlap.NO_OVERLAP
    )

    assert model.units.count == 14
    _, is_optimal = fastest_chain(model)
    assert not is_optimal


@examples(30)
@given(canonical_dags(SMALL), machines, st.sampled_from(["sb-lts", "sb-rlx", "best"]))
def test_checker_accepts_planned_chains(dag: CanonicalDag, system: System, partition: str) -> None:
    pes = system.accelerator.cores
    model = TaskModel(dag, system, ScheduleOptions(pes, partition), ScheduleOptions(pes), Overlap.PERFECT_OVERLAP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "REPLAYED", 0)
        patch.setattr(search, "REPLAYED_OF_TINY", 0)
        try:
            found = map_tasks(model)
        except InfeasibleError:
            return

    check_task_mapping(dag, system, Overlap.PERFECT_OVERLAP, found)
    assert found.bound_time_s <= found.time_s * (1 + 1e-12)


@pytest.mark.parametrize("is_chosen", [False, True])
def test_kernels_are_not_parted_where_the_schedule_that_is_known_is_near_the_bound(
    is_chosen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_model, "_FEW_NODES", 0)
    dag = parse_dag("dfcompile-dag/1 chain\ntask a\ntask b\nedge a -> b volume=1000\n")
    system = machine(2, 0.0, 64.0)
    known = timed_schedule(dag, replace(ScheduleOptions(2), timing=Timing.EXACT)).schedule
    for name in ("REPLAYED", "REPLAYED_OF_TINY"):
        monkeypatch.setattr(search, name, 0)
    planned: list[int] = []
    monkeypatch.setattr(TaskModel, "planned", lambda _, units, __: planned.append(units))

    model = model_of(dag, system)
    if is_chosen:
        whole = model.whole(known)
        assert whole is not None
        model = replace(model, chosen=Chosen(whole, model.stores))
    else:
        model = replace(model, known=known)
    (found,), is_proved = fastest_chain(model)

    assert (found.cycles, found.kernels, planned) == (1001, ("a", "b"), [])
    assert is_proved == (known.makespan_cycles == 1001)


@examples(60)
@given(canonical_dags(SMALL), machines)
def test_what_a_bound_spares_changes_no_plan(dag: CanonicalDag, system: System) -> None:
    asked, without_bounds = search._Search(model_of(dag, system)), model_of(dag, system)
    for arc, least_ns in enumerate(asked._least_ns):
        units = asked._arcs.mask(arc)
        found = asked._model.planned(units, least_ns)
        other = without_bounds.planned(units)
        assert least_ns <= found.time_ns * (1 + 1e-9)
        assert (found.time_ns, found.stores, found.cycles) == (other.time_ns, other.stores, other.cycles)


def _through_a_buffer() -> CanonicalDag:
    """A task that writes ten elements, kept, and one that reads them."""
    return parse_dag(
        "dfcompile-dag/1 two\n"
        "buffer x\nelementwise a\nbuffer kept\nelementwise b\nbuffer y\n"
        "edge x -> a volume=10\nedge a -> kept volume=10\nedge kept -> b volume=10\nedge b -> y volume=10\n"
    )


@pytest.mark.parametrize(("gb_per_s", "is_planned"), [(1e9, False), (1e-3, True)])
def test_of_a_large_graph_that_compute_bounds_only_the_whole_is_planned(
    gb_per_s: float,
    is_planned: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two kernels that hand over an array: with slow DRAM it counts that the chip cannot hold it."""
    dag = _through_a_buffer()
    asked: list[int] = []
    planned = TaskModel.planned

    def count(model: TaskModel, units: int, least_ns: float) -> TaskConfiguration | None:
        asked.append(units)
        return planned(model, units, least_ns)

    monkeypatch.setattr(TaskModel, "planned", count)
    for limit in ("REPLAYED", "REPLAYED_OF_TINY", "SMALL"):
        monkeypatch.setattr(search, limit, 0)
    found = map_tasks(model_of(dag, machine(2, 20.0, gb_per_s)))

    assert len(asked) > 1 if is_planned else asked == [0b11]
    assert found.bound_time_s <= found.time_s


def exchange(source: str, time_ns: float) -> Exchange:
    return Exchange("t", source, (), ExchangeKind.ALL_GATHER, (0,), "split", "whole", 8, 8, time_ns, ((), ()))


@examples(30)
@given(canonical_dags(SMALL), machines, st.sampled_from(list(Overlap)), st.data())
def test_no_other_chain_on_several_chips_is_faster(
    dag: CanonicalDag, system: System, overlap: Overlap, data: st.DataObject
) -> None:
    """Exchanges take time where they start; who reads what they make runs later."""
    names = [name for name in model_of(dag, system).units.names if "+" not in name]  # not of several scopes
    pairs = [(first, second) for place, second in enumerate(names) for first in names[:place]]
    apart = data.draw(st.lists(st.sampled_from(pairs), unique=True, max_size=3)) if pairs else []
    exchanges = tuple(exchange(first, data.draw(st.sampled_from([0.5, 20.0]))) for first, _ in apart)
    part = replace(PART, accelerator=system.accelerator, dram=system.dram)
    model = replace(model_of(dag, part, overlap), chips=ChipsInUse(part, (), exchanges, tuple(apart)))
    assume(model.units.count <= FEW_UNITS)
    expected_ns = least_ns(model)
    if expected_ns == inf:
        with pytest.raises(InfeasibleError, match="FIFOs"):
            map_tasks(model)
        return

    found = map_tasks(model)

    assert found.time_s * 1e9 == pytest.approx(expected_ns, rel=1e-9)
    assert found.bound_time_s <= found.time_s * (1 + 1e-12)
    check_task_mapping(dag, part, overlap, found)
    place = {name: number for number, one in enumerate(found.configurations) for name in one.kernels}
    assert all(place[first] < place[second] for first, second in apart)
    assert sum(one.network_ns for one in found.configurations) == pytest.approx(sum(one.time_ns for one in exchanges))
