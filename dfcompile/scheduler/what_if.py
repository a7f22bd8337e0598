"""What a schedule takes on a machine whose parts take more, or less: the same tasks, elements, order and FIFOs."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.hardware import Hardware
from dfcompile.errors import UserError
from dfcompile.records import replace
from dfcompile.scheduler.schedules import Schedule
from dfcompile.scheduler.simulation import NEVER, simulate
from dfcompile.scheduler.simulation.simulator import replay_of

Machines: TypeAlias = tuple[tuple[str, Hardware], ...]  # by texts such as ``ports=2``


class WhatIf(Struct, frozen=True):
    """What a schedule takes on another machine.

    Attributes:
        change: by which the machine differs.
        makespan_cycles: of the replay; ``None`` if it ends in a deadlock.
        hardware: of the machine.
        anew: the schedule of the same tasks that is made for it.
        anew_cycles: its makespan; ``None`` if it ends in a deadlock.
    """

    change: str
    makespan_cycles: int | None
    hardware: Hardware
    anew: Schedule
    anew_cycles: int | None


def what_if(
    dag: CanonicalDag,
    schedule: Schedule,
    machines: Machines,
    made_for: Callable[[Hardware], tuple[Schedule, int | None]],
) -> tuple[WhatIf, ...]:
    """Return what a schedule takes on other machines, by what these differ in.

    Args:
        dag: the graph.
        schedule: of it.
        machines: the others.
        made_for: gives the schedule that is made for a machine, and its makespan.

    Raises:
        UserError: times are not those of a replay.
        ReplayTooLargeError: a replay is too large.
    """
    found = []
    for change, hardware in machines:
        _require_exact(schedule)
        cycles = simulate(dag, replace(replay_of(schedule), hardware=hardware), details=False).makespan_cycles
        anew, anew_cycles = made_for(hardware)
        _require_exact(anew)
        found.append(WhatIf(change, None if cycles == NEVER else cycles, hardware, anew, anew_cycles))
    return tuple(found)


def _require_exact(schedule: Schedule) -> None:
    if not schedule.timing.is_exact:
        raise UserError(
            f"--what-if: found {schedule.timing.value} times against those of a replay (with --timing exact; the graph "
            "may be too large)"
        )
