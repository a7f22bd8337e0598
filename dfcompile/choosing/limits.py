"""How much is looked at for a choice."""

from msgspec import Struct
from msgspec.structs import astuple


class Limits(Struct, frozen=True):
    """How many tasks a choice may have, and how many uniform choices are compared with it.

    Attributes:
        tasks: of all choices together whose scores are looked at, but for those that are looked at in any case.
        scopes: of all uniform choices together that are sketched.
        promising_tasks: the same of those that come after these because their estimates are near the least score.
        shorter_tasks: the same of those that come after these because their estimates are below the least score.
        own_tasks: that a choice may have, however few processing elements there are, unless the published one has more.
        own_tasks_per_element: that it may have per processing element, where that is more.
    """

    tasks: int
    scopes: int
    promising_tasks: int = 0
    shorter_tasks: int = 0
    own_tasks: int = 36_000
    own_tasks_per_element: int = 48

    @property
    def is_quick(self) -> bool:
        """Whether more is compared where the choice is asked for."""
        return self.tasks <= QUICK.tasks

    def most_tasks(self, pes: int) -> int:
        """Return how many tasks a choice for P processing elements may have."""
        return max(self.own_tasks, self.own_tasks_per_element * pes)

    def of_slow_schedules(self) -> "Limits":
        """Return these limits, or less where a schedule takes longer than a quick one without further conditions."""
        return Limits(*map(min, astuple(self), astuple(SLOWLY_SCHEDULED)))


NOTHING = Limits(0, 0)
# For schedules of some 8 microseconds a task: some seconds on 64 elements, a minute and more on 2,048.
THOROUGH = Limits(
    600_000,
    60_000,
    promising_tasks=6_000_000,
    shorter_tasks=12_000_000,
    own_tasks=262_144,
    own_tasks_per_element=256,
)
SLOWLY_SCHEDULED = Limits(80_000, 2_000)  # some seconds, and half a second; minutes where more is tried
QUICK = Limits(10_000, 500, own_tasks_per_element=160)  # half a second, and a tenth
