"""The adapter to OR-Tools: list schedules as a constraint program, for proofs and for shorter ones.

The program knows earliest and latest times, works, streams, memory, and one cumulative constraint of P. It does not
look at single elements, so what it proves holds of every schedule; what it finds counts after its replay alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import InternalError
from dfcompile.scheduler.bounds.precedence import NO_STREAM, directions
from dfcompile.scheduler.bounds.time_table import Windows

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

_DETERMINISTIC_SECONDS = 0.5  # of the solver's own clock, which counts steps: some seconds
_SEED = 20230616

NOT_PROVED = "effort high: no proofs are tried, OR-Tools is not installed (pip install 'dfcompile[proofs]')"


@dataclass(frozen=True, slots=True)
class Solved:
    """What the solver proved and found.

    Attributes:
        bound: cycles that every schedule takes at least.
        start: of each node in the shortest schedule found, shape [nodes].
        end: of each node, shape [nodes].
    """

    bound: int
    start: list[int]
    end: list[int]


def is_installed() -> bool:
    """Return whether proofs can be tried: OR-Tools comes with the extra ``proofs``."""
    return find_spec("ortools") is not None


def solve(dag: CanonicalDag, pes: int, known: tuple[Windows, int], hint: tuple[list[int], list[int]]) -> Solved:
    """Look for a shorter schedule, and for a proof that there is none, in a fixed number of steps.

    Args:
        dag: the graph.
        pes: number of processing elements P.
        known: earliest times and what follows each node; cycles that no schedule is shorter than.
        hint: starts and ends of a schedule, shape [nodes] each.
    """
    from ortools.sat.python import cp_model

    program = _Program(cp_model.CpModel(), dag, pes, known, hint)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.interleave_search = True  # several strategies in turn, large neighbourhoods among them
    solver.parameters.random_seed = _SEED
    solver.parameters.max_deterministic_time = _DETERMINISTIC_SECONDS
    status = solver.solve(program.model)
    bound = max(known[1], round(solver.best_objective_bound))
    match status:
        case cp_model.OPTIMAL | cp_model.FEASIBLE:
            return Solved(bound, [solver.value(time) for time in program.start], [solver.value(t) for t in program.end])
        case cp_model.UNKNOWN:
            return Solved(known[1], *hint)
    raise InternalError(f"proofs of {dag.name!r}: found {solver.status_name(status)} against a schedule that is known")


class _Program:
    """The constraints."""

    def __init__(
        self,
        model: cp_model.CpModel,
        dag: CanonicalDag,
        pes: int,
        known: tuple[Windows, int],
        hint: tuple[list[int], list[int]],
    ) -> None:
        windows, bound = known
        self.model = model
        self.start: list[cp_model.IntVar] = []
        self.end: list[cp_model.IntVar] = []
        last = max(hint[1], default=0)
        task, work, intervals = dag.is_computational.tolist(), dag.work.tolist(), []
        for node in range(dag.nodes_count):
            start = model.new_int_var(windows.start[node], last - windows.after_start[node], "")
            end = start
            model.add_hint(start, hint[0][node])
            if task[node]:
                end = model.new_int_var(windows.end[node], last - windows.after_end[node], "")
                model.add_hint(end, hint[1][node])
                intervals.append(model.new_interval_var(start, model.new_int_var(work[node], last, ""), end, ""))
            self.start.append(start)
            self.end.append(end)
        model.add_cumulative(intervals, [1] * len(intervals), pes)
        self._precede(dag)
        makespan = model.new_int_var(bound, last, "")
        model.add_max_equality(makespan, self.end)
        model.minimize(makespan)

    def _precede(self, dag: CanonicalDag) -> None:
        for node, row in enumerate(directions(dag)[0].awaited):
            for other, to_start, to_end in row:
                if to_start == NO_STREAM:
                    self.model.add(self.start[node] >= self.end[other])
                else:
                    self.model.add(self.start[node] >= self.start[other] + to_start)
                    self.model.add(self.end[node] >= self.end[other] + to_end)
