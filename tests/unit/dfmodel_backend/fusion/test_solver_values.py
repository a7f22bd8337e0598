"""Solvers of fusion are values: ours and those of nobody's are asked the same way, and their chains are checked."""

import itertools
from collections.abc import Callable

import pytest

from dfcompile.dfmodel_backend import MappingOptions, check_mapping, fusion_solvers, map_graph
from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.fusion.fuse import DesignFusion
from dfcompile.dfmodel_backend.fusion.fusion_problem import FusionProblem
from dfcompile.dfmodel_backend.fusion.fusion_solver import SOLVERS, FusionSolver, fusion_solver
from dfcompile.dfmodel_backend.fusion.solvers.built_in import DP, INTERVALS
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution, solve_design
from dfcompile.errors import InfeasibleError, PluginError, UserError, VerificationError
from dfcompile.plugins import Collected, Plugin
from dfcompile.records import replace
from dfcompile.testing import check_solver
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.graphs import chain, machine
from tests.unit.dfmodel_backend.solved_designs import solved_design


@fusion_solver("one-by-one", is_exact=False, source="own")
def one_by_one(problem: FusionProblem) -> Chain | None:
    """Return a configuration for each kernel."""
    count = len(problem.shape.predecessors)
    return tuple(1 << kernel for kernel in range(count)) if count <= len(problem.shape.allowed) else None


def solver_of(function: Callable[[FusionProblem], Chain | None], *, is_exact: bool = False) -> FusionSolver:
    """A solver as a package of a third party has it."""
    function.__module__ = "mylab.solvers"
    return fusion_solver("mine", is_exact=is_exact, source="mylab24")(function)


def test_all_solvers_are_found_and_listed() -> None:
    assert list(fusion_solvers().by_name) == ["cbc", "dp", "highs", "intervals"]
    assert SOLVERS.listed().plugins[1] == ("dp", "dfcompile.dfmodel_backend.fusion.solvers.built_in")
    assert {solver.name for solver in fusion_solvers().by_name.values() if not solver.is_exact} == {"intervals"}


@pytest.mark.parametrize(("name", "graphs"), [("dp", 40), ("highs", 8), ("intervals", 40)])
def test_ours_keep_the_laws_of_solvers(name: str, graphs: int) -> None:
    check_solver(fusion_solvers().by_name[name], graphs=graphs)


def test_a_solver_of_a_function_keeps_them_as_well() -> None:
    check_solver(one_by_one, graphs=15)
    assert one_by_one.summary == "Return a configuration for each kernel."


def test_the_report_has_the_name_of_the_solver_and_no_claim_that_it_does_not_prove() -> None:
    """Any new solver ran the shortest path, and printed `optimal (dp)`."""
    mapping = map_graph(chain(), machine(sram_bytes=300), solver=one_by_one)

    check_mapping(chain(), machine(sram_bytes=300), mapping)
    assert mapping.solver == "one-by-one"
    assert len(mapping.figures.configs) == 2
    assert not mapping.optimal
    assert mapping.gap > 0
    exact = map_graph(chain(), machine(sram_bytes=300), solver=replace(DP, name="other"))
    assert exact.figures.time_s < mapping.figures.time_s


def test_an_unknown_solver_is_named() -> None:
    with pytest.raises(UserError, match=r"--solver 'hihgs': unknown \(did you mean 'highs'\?\)"):
        map_graph(chain(), machine(), MappingOptions(solver="hihgs"))


WRONG: list[tuple[object, str]] = [
    ((), "chain: found kernels 0, 1 in no configuration"),
    ((1,), "chain: found kernel 1 in no configuration"),
    ((2, 1), "configuration 0: found kernel 1 before kernel 0"),
    ((1, 3), "configuration 1: found kernel 0 for the second time"),
    ((7,), "configuration 0: found kernel 2 of no graph"),
    ((1, 2, 0), "chain: found 3 configurations against at most 2"),
    ([1, 2], r"chain: found \[1, 2\] against a tuple of sets of kernels"),
    ((1.0, 2), r"chain: found \(1.0, 2\) against a tuple"),
    ((-1,), r"chain: found \(-1,\) against a tuple"),
    ("ab", "chain: found 'ab' against a tuple"),
]


@pytest.mark.parametrize(("returned", "message"), WRONG, ids=[str(one) for one, _ in WRONG])
def test_a_wrong_chain_is_the_fault_of_whose_solver_it_is(returned: Chain, message: str) -> None:
    with pytest.raises(PluginError, match=rf"in solver mylab\.solvers\.mine: {message}"):
        map_graph(chain(), machine(), solver=solver_of(lambda _: returned))
    with pytest.raises(VerificationError, match=message):
        map_graph(chain(), machine(), solver=replace(solver_of(lambda _: returned), module="dfcompile.own"))


def test_chains_that_break_limits_are_told() -> None:
    def together(problem: FusionProblem) -> Chain:
        return (problem.shape.every_kernel,)

    def split(_: FusionProblem) -> Chain:
        return (1, 2)

    fused = solver_of(together)
    with pytest.raises(PluginError, match="configuration 0: found 2 kernels against at most 1"):
        map_graph(chain(), machine(cores=1), solver=fused)
    with pytest.raises(PluginError, match="configuration 0: breaks a limit of cores, SRAM or DRAM"):
        map_graph(chain(), machine(sram_bytes=80), solver=fused)
    with pytest.raises(PluginError, match="configuration 0: breaks a limit of cores, SRAM or DRAM"):
        map_graph(chain(), machine(capacity_bytes=100), solver=solver_of(split))


def test_a_solver_that_raises_or_finds_nothing_is_named() -> None:
    def raises(problem: FusionProblem) -> Chain:
        return (problem.shape.allowed[99],)

    with pytest.raises(PluginError, match=r"in solver mylab\.solvers\.mine: IndexError: "):
        map_graph(chain(), machine(), solver=solver_of(raises))
    with pytest.raises(InfeasibleError, match="solver 'mine': found no configurations that fit SRAM, DRAM and cores"):
        map_graph(chain(), machine(), solver=solver_of(lambda _: None))


def test_the_checker_of_solvers_tells_what_is_wrong() -> None:
    with pytest.raises(AssertionError, match=r"solver 'mine': graph .*: claims the optimum, but .* against"):
        check_solver(solver_of(lambda problem: INTERVALS.run(problem).chain, is_exact=True), graphs=100)
    with pytest.raises(AssertionError, match=r"solver 'mine': graph 1: found nothing, but .* fit"):
        check_solver(solver_of(lambda problem: one_by_one.run(problem).chain, is_exact=True))
    with pytest.raises(PluginError, match=r"in solver mylab\.solvers\.mine: configuration"):
        check_solver(solver_of(lambda problem: (problem.shape.every_kernel,)))
    calls = itertools.count()

    def fickle(problem: FusionProblem) -> Chain | None:
        return (DP if next(calls) % 2 else one_by_one).run(problem).chain

    with pytest.raises(AssertionError, match=r"solver 'mine': graph .*: found .* the second time against"):
        check_solver(solver_of(fickle))


def solved() -> DesignSolution:
    return solved_design("mamba_scan_256k_rdu")


def test_chains_of_designs_have_the_times_of_the_solver() -> None:
    best = solved()
    model = DesignModel(best.design, best.decision.sharding, best.decision.tiles, RIGHT)
    problem = FusionProblem(model)
    found = DP.solve(problem)

    assert found.chain is not None
    assert problem.chain_times(found.chain).sum() == pytest.approx(found.time_ns)
    assert problem.chain_times((0, *found.chain, 0))[[0, -1]].tolist() == [0, 0]


def install(monkeypatch: pytest.MonkeyPatch, solver: FusionSolver) -> None:
    """As if a package with it were installed."""
    shipped = SOLVERS.collect()
    plugins = (*shipped.plugins, Plugin(solver, solver.module))
    known = Collected(plugins, {**shipped.by_name, solver.name: solver}, ())
    monkeypatch.setattr("dfcompile.dfmodel_backend.fusion.fusion_solver.fusion_solvers", lambda: known)


def test_designs_are_solved_by_solvers_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    design = read_design(DESIGNS / "mamba_scan_256k_rdu.txt")
    install(monkeypatch, solver_of(lambda problem: INTERVALS.run(problem).chain))

    best = solved()
    found = solve_design(design, DesignOptions(solver="mine"))

    assert (best.solver, best.optimal) == ("dp", True)
    assert (found.solver, found.optimal) == ("mine", False)
    assert found.bound_ns < best.figures.batch_ns <= found.figures.batch_ns
    assert 0 < found.gap < 1


def test_a_solver_without_stages_does_no_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    design = read_design(DESIGNS / "readme_gpt3_1t_sn30.txt")
    batch = replace(design.execution.batch, layers_in_graph=2)
    install(monkeypatch, replace(one_by_one, name="mine", module="mylab.solvers"))

    with pytest.raises(UserError, match="solver 'mine': found stages of a pipeline against one stage"):
        DesignFusion(replace(design, execution=replace(design.execution, batch=batch)), DesignOptions(solver="mine"))
