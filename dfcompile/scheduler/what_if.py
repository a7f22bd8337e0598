"""What a schedule takes on a machine whose parts take more, or less: the same tasks, elements, order and FIFOs."""

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
    """

    change: str
    makespan_cycles: int | None
    hardware: Hardware


def what_if(dag: CanonicalDag, schedule: Schedule, machines: Machines) -> tuple[WhatIf, ...]:
    """Return what a schedule takes on other machines, by what these differ in.

    Raises:
        UserError: its own times are not those of a replay.
        ReplayTooLargeError: a replay is too large.
    """
    if machines and not schedule.timing.is_exact:
        raise UserError(
            f"--what-if: found {schedule.timing.value} times against those of a replay (with --timing exact; the graph "
            "may be too large)"
        )
    found = []
    for change, hardware in machines:
        cycles = simulate(dag, replace(replay_of(schedule), hardware=hardware), details=False).makespan_cycles
        found.append(WhatIf(change, None if cycles == NEVER else cycles, hardware))
    return tuple(found)
