"""A process of its own for OR-Tools: reads a constraint program as JSON, writes what it found and proved.

OR-Tools and highspy each bring a library named HiGHS, of which a process can load one only. This file is run by itself
(`cp_sat.py` does), never imported, and imports nothing of dfcompile.
"""

import json
import sys
from typing import TypedDict

from ortools.sat.python import cp_model

SEED = 20230616
DETERMINISTIC_SECONDS = 0.5  # of the solver's own clock, which counts steps: some seconds


class Constraints(TypedDict):
    """Intervals on P elements, between earliest and latest times, and who waits for whom.

    Attributes:
        pes: P.
        bound: cycles that no schedule is shorter than.
        last: cycle by which all have ended.
        start: of each node: least and most.
        end: of each node the same; none of a node that takes no time.
        work: of each node: the least length of its interval.
        after: pairs of nodes: the first starts when the second has ended.
        streams: two nodes and two distances, from start to start and from end to end.
        hint: starts and ends of a schedule.
    """

    pes: int
    bound: int
    last: int
    start: list[tuple[int, int]]
    end: list[tuple[int, int] | None]
    work: list[int]
    after: list[tuple[int, int]]
    streams: list[tuple[int, int, int, int]]
    hint: tuple[list[int], list[int]]


class Answer(TypedDict):
    """What the solver says: its status, and with a schedule what it proved and found."""

    status: str
    bound: int
    start: list[int]
    end: list[int]


def answer(given: Constraints) -> Answer:
    """Solve the program in a fixed number of steps."""
    model = cp_model.CpModel()
    starts: list[cp_model.IntVar] = []
    ends: list[cp_model.IntVar] = []
    intervals = []
    for node, window in enumerate(given["start"]):
        start = model.new_int_var(*window, "")
        end = start
        model.add_hint(start, given["hint"][0][node])
        closing = given["end"][node]
        if closing is not None:
            end = model.new_int_var(*closing, "")
            model.add_hint(end, given["hint"][1][node])
            length = model.new_int_var(given["work"][node], given["last"], "")
            intervals.append(model.new_interval_var(start, length, end, ""))
        starts.append(start)
        ends.append(end)
    model.add_cumulative(intervals, [1] * len(intervals), given["pes"])
    for node, other in given["after"]:
        model.add(starts[node] >= ends[other])
    for node, other, to_start, to_end in given["streams"]:
        model.add(starts[node] >= starts[other] + to_start)
        model.add(ends[node] >= ends[other] + to_end)
    makespan = model.new_int_var(given["bound"], given["last"], "")
    model.add_max_equality(makespan, ends)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.interleave_search = True  # several strategies in turn, large neighbourhoods among them
    solver.parameters.random_seed = SEED
    solver.parameters.max_deterministic_time = DETERMINISTIC_SECONDS
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Answer(status=solver.status_name(status), bound=0, start=[], end=[])
    return Answer(
        status=solver.status_name(status),
        bound=solver.response_proto.inner_objective_lower_bound,  # an integer, which the bound as a float need not be
        start=[solver.value(time) for time in starts],
        end=[solver.value(time) for time in ends],
    )


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
