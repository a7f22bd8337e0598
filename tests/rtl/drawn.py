"""Schedules drawn at random, and circuits of them."""

from random import Random
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis.strategies import SearchStrategy

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.hardware import Hardware
from dfcompile.generators.canonical_dags import chain, cholesky, fft, fork_join, gaussian
from dfcompile.generators.single_operators import convolution, matmul
from dfcompile.options import Fifos
from dfcompile.rtl.circuit import circuit_of
from dfcompile.rtl.folder import NamedCircuit, scheduled_circuit
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.checked_schedule import Scheduling
from dfcompile.scheduler.simulation import NEVER, Replay, simulate
from tests.strategies import DagShape, canonical_dags, in_phases, with_operators
from tests.unit.scheduler.plain_replay import replays

Drawn = TypeVar("Drawn")
PARTITIONS = ("best", "sb-rlx", "sb-lts", "work-ordered")
MOST_WORK = 1500  # cycles of all tasks of a graph: Icarus simulates some 20,000 in a second
HOPS = (0, 0, 0, 1, 1, 2, 5)
PORTS = (None, None, None, 1, 2, 3)
PIPELINES = (0, 0, 0, 1, 2, 5, 9)
OPERATORS = ((), (), (("Add", 1), ("Exp", 4)), (("Exp", 12),))  # whose pipelines are others
FIFOS: tuple[Fifos | None, ...] = (None, None, "in-flight", "rule", "minimal", 1, 2, 7)


def drawn_circuits(count: int, seed: int) -> list[NamedCircuit]:
    """Circuits of random schedules: a quarter of placements and FIFOs that nobody would choose, deadlocks included.

    The others are made by all partitioners, of random graphs and of those of generators.
    """
    random = Random(seed)
    wild = count // 4
    found = [
        _of_replay(f"wild_{number}", *one)
        for number, one in enumerate(_drawn(replays(phases=True, most_hop=3, most_pipeline=4), wild, seed))
    ]
    shape = DagShape(max_volume=40, phases=True)
    plain = _drawn(canonical_dags(shape).map(with_operators), (count - wild) // 2, seed)
    graphs = [*plain, *(_in_phases(_generated(random), random) for _ in range(count - wild - len(plain)))]
    return [*found, *(_of_schedule(f"{dag.name}_{number}", dag, random) for number, dag in enumerate(graphs))]


def _of_replay(name: str, dag: CanonicalDag, replay: Replay) -> NamedCircuit:
    cycles = simulate(dag, replay, details=False).makespan_cycles
    return NamedCircuit(name, circuit_of(dag, replay), None if cycles == NEVER else cycles)


def _of_schedule(name: str, dag: CanonicalDag, random: Random) -> NamedCircuit:
    options = ScheduleOptions(
        random.randint(1, 16),
        random.choice(PARTITIONS),
        random.random() < 0.2,
        barrier=random.choice((None, True, False)),
        fifos=random.choice(FIFOS),
        hardware=Hardware(
            random.choice(HOPS), random.choice(PIPELINES), random.choice(PORTS), random.choice(OPERATORS)
        ),
    )
    found = Scheduling(dag).on(options)
    return scheduled_circuit(name, dag, found.schedule, ends=found.ends)


def _in_phases(dag: CanonicalDag, random: Random) -> CanonicalDag:
    cuts = random.sample(range(1, dag.nodes_count), random.choice((0, 0, 1, 2)))
    return with_operators(in_phases(dag, cuts, [random.random() < 0.8 for _ in range(dag.edges_count)]))


def _generated(random: Random) -> CanonicalDag:
    volume, seed = random.choice((4, 8, 16, 24)), random.randint(0, 999)
    makers = (
        lambda: cholesky(random.randint(2, 4), volume, seed),
        lambda: fft(random.choice((2, 4, 8)), volume, seed),
        lambda: gaussian(random.randint(3, 6), volume, seed),
        lambda: chain(random.randint(2, 10), volume, seed),
        lambda: fork_join(random.randint(2, 4), random.randint(2, 4), volume, seed),
        lambda: matmul(random.randint(1, 4), random.randint(1, 5), random.randint(1, 4)),
        lambda: convolution(random.randint(3, 5), 2, random.randint(1, 2)),
    )
    while True:
        dag = random.choice(makers)()
        if dag.work.sum() <= MOST_WORK:
            return dag


def _drawn(strategy: SearchStrategy[Drawn], count: int, seed: int) -> list[Drawn]:
    found: list[Drawn] = []

    @seeded(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(one: Drawn) -> None:
        found.append(one)

    draw()
    return found[:count]
