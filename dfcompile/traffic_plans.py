"""The least traffic of a model that is known for a size of the chip's memory, as reports show it."""

from functools import cached_property

from dfcompile.errors import UserError
from dfcompile.frontend import Program
from dfcompile.io_bounds.curve import Rules, Tiles
from dfcompile.io_bounds.fusion.epilogues import least_plan, with_epilogues
from dfcompile.io_bounds.fusion.residency import ResidencyPlan
from dfcompile.io_bounds.operators import BoundedModel
from dfcompile.operator_shapes import bounded_model

MOST_STATES = 200  # of a plan in a report: below a second
RULES = Rules(tiles=Tiles.DIVISORS)  # of a plan in a report: tiles of all sizes take a second of a large model


class TrafficPlans:
    """The plans of a model, one per size of SRAM; each is made when it is first asked for."""

    def __init__(self, program: Program) -> None:
        """Take a program of level 0."""
        self._program = program
        self._plans: dict[int, ResidencyPlan | None] = {}

    @cached_property
    def model(self) -> BoundedModel:
        """The operators as bounds see them."""
        return bounded_model(self._program)

    @cached_property
    def merged(self) -> BoundedModel:
        """The same with those in one that run as a result is made."""
        return with_epilogues(self.model)

    def of(self, size_bytes: int) -> ResidencyPlan | None:
        """Return the plan for a size of SRAM; ``None`` if no tiles fit, or there are too many to look at.

        Args:
            size_bytes: of all chips together; 0: unlimited.
        """
        if size_bytes not in self._plans:
            held = sum(tensor.words * tensor.element_bytes for tensor in self.model.tensors)
            enough = 4 * held + 2**20  # for all tensors and the largest tiles
            try:
                self._plans[size_bytes] = least_plan(self.model, size_bytes or enough, RULES, MOST_STATES)
            except UserError:
                self._plans[size_bytes] = None
        return self._plans[size_bytes]
