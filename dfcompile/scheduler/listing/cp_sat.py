"""The adapter to OR-Tools: list schedules as a constraint program, for proofs and for shorter ones.

The program knows earliest and latest times, works, streams, memory, and one cumulative constraint of P. It does not
look at single elements, so what it proves holds of every schedule; what it finds counts after its replay alone.
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import InternalError, UserError
from dfcompile.host.private_folder import ending_with_us
from dfcompile.scheduler.bounds.precedence import NO_STREAM, Times, directions
from dfcompile.scheduler.bounds.time_table import Windows

if TYPE_CHECKING:
    from dfcompile.scheduler.listing.cp_sat_process import Answer, Constraints

_PROCESS = Path(__file__).with_name("cp_sat_process.py")

NOT_PROVED = "effort high: no proofs are tried, OR-Tools is not installed (pip install 'dfcompile[proofs]')"


def is_installed() -> bool:
    """Return whether proofs can be tried: OR-Tools comes with the extra ``proofs``."""
    return find_spec("ortools") is not None


def solve(dag: CanonicalDag, pes: int, known: tuple[Windows, int], hint: Times) -> tuple[int, Times]:
    """Look for a shorter schedule, and for a proof that there is none, in a fixed number of steps.

    The hint is planned from rates, and its replay may take longer: where earliest times already exceed its end, the
    program ends with these; where nothing ends so soon, that is a proof as well.

    Args:
        dag: the graph.
        pes: number of processing elements P.
        known: earliest times and what follows each node; cycles that no schedule is shorter than.
        hint: starts and ends of a planned schedule, shape [nodes] each.

    Returns:
        Cycles that every schedule takes at least, and the times of the shortest schedule found.

    Raises:
        UserError: OR-Tools is there, but does not run.
    """
    constraints = _constraints(dag, pes, known, hint)
    found = _answer(constraints)
    match found["status"]:
        case "OPTIMAL" | "FEASIBLE":
            return max(known[1], found["bound"]), (found["start"], found["end"])
        case "UNKNOWN":
            return known[1], hint
        case "INFEASIBLE":
            return constraints["last"] + 1, hint
        case status:
            raise InternalError(f"proofs of {dag.name!r}: found {status} against an answer")


def _constraints(dag: CanonicalDag, pes: int, known: tuple[Windows, int], hint: Times) -> "Constraints":
    windows, bound = known
    needed = zip((*windows.start, *windows.end), (*windows.after_start, *windows.after_end), strict=True)
    last = max(bound, *hint[1], *(before + after for before, after in needed))
    task = dag.is_computational.tolist()
    ends = ((end, last - after) for end, after in zip(windows.end, windows.after_end, strict=True))
    links = [(node, *link) for node, row in enumerate(directions(dag)[0].awaited) for link in row]
    return {
        "pes": pes,
        "bound": bound,
        "last": last,
        "start": [(windows.start[node], last - windows.after_start[node]) for node in range(dag.nodes_count)],
        "end": [window if is_task else None for window, is_task in zip(ends, task, strict=True)],
        "work": dag.work.tolist(),
        "after": [(node, other) for node, other, to_start, _ in links if to_start == NO_STREAM],
        "streams": [link for link in links if link[2] != NO_STREAM],
        "hint": hint,
    }


def _answer(given: "Constraints") -> "Answer":
    with ending_with_us():
        done = subprocess.run(  # noqa: S603  # our own file, by our own interpreter
            [sys.executable, "-P", str(_PROCESS)], input=json.dumps(given), capture_output=True, text=True, check=False
        )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise UserError(f"effort high: OR-Tools does not run, {said} (pip install --force-reinstall ortools)")
    answer: Answer = json.loads(done.stdout)
    return answer
