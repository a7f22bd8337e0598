"""Checks for solvers of fusion: chains of random graphs against the shortest path, which is exact."""

import math
from random import Random

from dfcompile.canonical_dag import Kernel, KernelVariant
from dfcompile.dfmodel_backend import (
    DataflowGraph,
    MappingOptions,
    Overlap,
    System,
    Tensor,
    TensorKind,
    Use,
    check_mapping,
    map_graph,
)
from dfcompile.dfmodel_backend.evaluate.graphs import Mapping
from dfcompile.dfmodel_backend.fusion.fusion_solver import FusionSolver
from dfcompile.dfmodel_backend.fusion.solvers.built_in import DP
from dfcompile.dfmodel_backend.machine.system import ONE_CHIP, Accelerator, Amount, Dram
from dfcompile.errors import InfeasibleError


def random_graph(random: Random, kernels: int) -> DataflowGraph:
    """Return a graph of so many kernels: products with weights and elementwise ones, each read by any later ones."""
    made = []
    tensors = [_tensor("x", TensorKind.INPUT, random.randrange(300), "", ["k0", "k1"][:kernels])]
    for number in range(kernels):
        name = f"k{number}"
        if random.random() < 0.5:  # half of them
            m, k, n = (random.randint(1, 6) for _ in range(3))
            made.append(Kernel(name, "MatMul", name, "mv", KernelVariant.GEMM_INPUT1_WEIGHT, 1, m, k, n, (), ()))
            tensors.append(_tensor(f"w{number}", TensorKind.WEIGHT, random.randrange(300), "", [name]))
        else:
            variant, elements = KernelVariant.ELEMENTWISE_INPUT1, random.randint(1, 30)
            made.append(Kernel(name, "Elementwise", name, "map", variant, 1, elements, 1, 1, (), ()))
        readers = [f"k{later}" for later in range(number + 1, kernels) if random.randrange(3) == 0]
        kind = TensorKind.INTERMEDIATE if readers and random.randrange(2) else TensorKind.OUTPUT
        tensors.append(_tensor(f"t{number}", kind, random.randrange(300), name, readers))
    return DataflowGraph.of("random", tuple(made), tuple(tensors))


def random_system(random: Random) -> System:
    """Return a chip of few cores whose SRAM and DRAM are small or unlimited."""
    cores, lanes, sram = random.randint(1, 8), random.randint(1, 2), Amount(random.choice([0, 300, 600, 1200]))
    chip = Accelerator(cores, lanes, 1, 1.0, sram=sram, price=Amount(100.0), power=Amount(10.0))
    dram = Dram(Amount(random.choice([0.5, 2.0, 8.0, 100.0])), Amount(random.choice([0, 0, 1200, 2500])), 1.0, 0.5)
    return System("random", 1, chip, dram, ONE_CHIP, ())


def _tensor(name: str, kind: TensorKind, size_bytes: int, source: str, readers: list[str]) -> Tensor:
    return Tensor(name, kind, size_bytes, source, tuple(Use(reader, 0) for reader in readers))


GRAPHS = 40
MOST_KERNELS = 7
TOLERANCE = 1e-9  # relative


def check_solver(solver: FusionSolver, *, graphs: int = GRAPHS, seed: int = 0) -> None:
    """Check a solver of fusion on random graphs of up to 7 kernels, on chips of little SRAM and DRAM.

    * Valid: each chain holds every kernel once, none before one that it waits for, and keeps the limits of cores, SRAM
      and DRAM; the independent checker accepts the mapping.
    * Honest: no chain is faster than the optimum, and a mapping that claims to be optimal is as fast. A solver that is
      exact finds a chain wherever there is one, and claims it.
    * Deterministic: a second time gives the same chain.

    Args:
        solver: to check.
        graphs: how many are drawn.
        seed: of the graphs.

    Raises:
        AssertionError: naming the graph, found against what.
        PluginError: the solver raises, or its chain is none.
    """
    random = Random(seed)  # noqa: S311  # graphs, no secrets
    for number in range(graphs):
        graph, system = random_graph(random, random.randint(1, MOST_KERNELS)), random_system(random)
        overlap, utilization = random.choice(list(Overlap)), random.choice([0.0, 0.7])
        most = random.randint(0, 3)
        options = MappingOptions(overlap=overlap, compute_utilization=utilization, max_configurations=most)
        where = f"solver {solver.name!r}: graph {number}"
        best, found = (_mapping(one, graph, system, options) for one in (DP, solver))
        if best is None:
            assert found is None, f"{where}: found {found} where nothing fits"
            continue
        if found is None:
            assert not solver.is_exact, f"{where}: found nothing, but {_sets(best)} fit"
            continue
        check_mapping(graph, system, found)
        again = _mapping(solver, graph, system, options)
        repeated = "nothing" if again is None else _sets(again)
        assert repeated == _sets(found), f"{where}: found {repeated} the second time against {_sets(found)}"
        least_s, found_s = best.figures.time_s, found.figures.time_s
        assert found_s >= least_s * (1 - TOLERANCE), f"{where}: found {found_s} s against at least {least_s}"
        assert found.optimal or not solver.is_exact, f"{where}: an exact solver does not claim the optimum"
        if found.optimal:
            said = f"claims the optimum, but {_sets(found)} take {found_s} s against {least_s} of {_sets(best)}"
            assert math.isclose(found_s, least_s, rel_tol=TOLERANCE), f"{where}: {said}"


def _mapping(solver: FusionSolver, graph: DataflowGraph, system: System, options: MappingOptions) -> Mapping | None:
    try:
        return map_graph(graph, system, options, solver)
    except InfeasibleError:
        return None


def _sets(mapping: Mapping) -> str:
    return " | ".join(" ".join(config.kernels) for config in mapping.figures.configs)
