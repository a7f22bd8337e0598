"""Solvers of fusion: who chooses which kernels share a configuration."""

from collections.abc import Callable
from functools import cache
from inspect import getdoc
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from dfcompile.dfmodel_backend.fusion.fusion_problem import Fusion, FusionProblem, StageProblem
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain
from dfcompile.dfmodel_backend.kernel_sets import FusionShape, kernels_of
from dfcompile.errors import InfeasibleError, UserError, VerificationError
from dfcompile.plugins import Collected, PluginKind, faults_of, is_own

Solve: TypeAlias = Callable[[FusionProblem], Fusion]
FuseStages: TypeAlias = Callable[[StageProblem], Fusion]


class FusionSolver(Struct, frozen=True):
    """A solver of fusion; a module-level value of this type in a plug-in is found.

    Attributes:
        name: as in ``--solver NAME``.
        is_exact: whether it proves that no chain is faster, unless a limit stops it.
        source: key of docs/references.md, or of the plug-in's own.
        summary: what it does, in a line.
        module: import path of the module that declares it.
        run: finds a chain.
        fuse_stages: finds the stages of a pipeline; None if the solver does not do that.
        lists: whether it looks at all possible configurations anyway, so that they are listed once for many problems.
    """

    name: str
    is_exact: bool
    source: str
    summary: str
    module: str
    run: Solve
    fuse_stages: FuseStages | None = None
    lists: bool = False

    def __str__(self) -> str:
        return self.name

    def solve(self, problem: FusionProblem) -> Fusion:
        """Return what the solver finds, its chain checked.

        Raises:
            PluginError: a plug-in raises, or its chain is none, or breaks a limit of cores, SRAM or DRAM.
            InternalError: the same of one of ours.
        """
        with faults_of("solver", f"{self.module}.{self.name}"):
            found = self.run(problem)
            if found.chain is not None:
                require_chain(problem, found.chain)
                times_ns = [] if is_own(self.module) else problem.chain_times(found.chain).tolist()
                for number, time_ns in enumerate(times_ns):
                    if not np.isfinite(time_ns):
                        raise VerificationError(f"configuration {number}: breaks a limit of cores, SRAM or DRAM")
        return found

    def found_nothing(self) -> InfeasibleError:
        """Return the error for a solver that found no chain where there may be one."""
        return InfeasibleError(
            f"solver {self.name!r}: found no configurations that fit SRAM, DRAM and cores (--solver dp tries all)"
        )

    def require_stages(self) -> None:
        """Check that the solver does pipelines.

        Raises:
            UserError: it does not.
        """
        if self.fuse_stages is None:
            raise UserError(f"solver {self.name!r}: found stages of a pipeline against one stage (dp does pipelines)")

    def solve_stages(self, problem: StageProblem) -> Fusion:
        """Return the stages of a pipeline that the solver finds.

        Raises:
            PluginError: a plug-in raises.
            InternalError: a solver of ours failed.
        """
        assert self.fuse_stages is not None  # as `require_stages` has it
        with faults_of("solver", f"{self.module}.{self.name}"):
            return self.fuse_stages(problem)


def fusion_solver(
    name: str, *, is_exact: bool, source: str
) -> Callable[[Callable[[FusionProblem], Chain | None]], FusionSolver]:
    """Make a solver of a function from a problem to a chain of sets of kernels, or None if it finds no chain.

    Args:
        name: as in ``--solver NAME``.
        is_exact: whether the function proves that no chain is faster, or that there is none. Reports then say so.
        source: key of docs/references.md, or of the plug-in's own.
    """

    def decorate(function: Callable[[FusionProblem], Chain | None]) -> FusionSolver:
        def run(problem: FusionProblem) -> Fusion:
            chain = function(problem)
            if chain is None:
                return Fusion(None, np.inf, is_exact, name)
            require_chain(problem, chain)
            return Fusion(chain, float(problem.chain_times(chain).sum()), is_exact, name)

        summary = (getdoc(function) or "").partition("\n")[0]
        return FusionSolver(name, is_exact, source, summary, function.__module__, run)

    return decorate


def require_chain(problem: FusionProblem, chain: Chain) -> None:
    """Check that a chain holds every kernel once, no kernel before one that it waits for, each where it may be.

    Raises:
        VerificationError: saying what was found against what.
    """
    shape = problem.shape
    if not isinstance(chain, tuple) or not all(type(kernels) is int and kernels >= 0 for kernels in chain):
        raise VerificationError(f"chain: found {chain!r} against a tuple of sets of kernels, as bit masks")
    slots = len(shape.allowed) * shape.stages
    if len(chain) > slots:
        raise VerificationError(f"chain: found {len(chain)} configurations against at most {slots}")
    done = 0
    for number, kernels in enumerate(chain):
        if kernels & ~shape.every_kernel:
            raise VerificationError(
                f"configuration {number}: found {_listed(kernels & ~shape.every_kernel)} of no graph"
            )
        if kernels & done:
            raise VerificationError(f"configuration {number}: found {_listed(kernels & done)} for the second time")
        done |= kernels
        _require_place(shape, number, kernels, done)
    if done != shape.every_kernel:
        raise VerificationError(f"chain: found {_listed(shape.every_kernel & ~done)} in no configuration")


def _require_place(shape: FusionShape, number: int, kernels: int, done: int) -> None:
    """Check that kernels may share a configuration behind those that are done with it."""
    where = f"configuration {number}"
    misplaced = kernels & ~shape.allowed[number % len(shape.allowed)]
    if misplaced:
        raise VerificationError(f"{where}: found {_listed(misplaced)}, which may not be there")
    if kernels.bit_count() > shape.most_kernels:
        raise VerificationError(f"{where}: found {kernels.bit_count()} kernels against at most {shape.most_kernels}")
    for kernel in kernels_of(kernels):
        needed = shape.predecessors[kernel]
        if needed & ~done:
            raise VerificationError(f"{where}: found kernel {kernel} before {_listed(needed & ~done)}")


def _listed(kernels: int) -> str:
    numbers = [str(kernel) for kernel in kernels_of(kernels)]
    return f"kernel{'s' * (len(numbers) > 1)} {', '.join(numbers)}"


SOLVERS = PluginKind("solver", FusionSolver, "dfcompile.dfmodel_backend.fusion.solvers", "dfcompile.solvers")


@cache
def fusion_solvers() -> Collected[FusionSolver]:
    """Return every solver of fusion of this package and of the entry points of ``dfcompile.solvers``.

    Raises:
        RegistrationError: two modules claim one name.
    """
    return SOLVERS.collect()


def find_solver(name: str) -> FusionSolver:
    """Return the solver of a name.

    Raises:
        UserError: there is none; the message has the nearest name.
    """
    return fusion_solvers().find(name, "--solver")
