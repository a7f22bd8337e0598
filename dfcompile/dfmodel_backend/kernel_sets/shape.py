"""What may be fused, whatever it costs: precedence of kernels, and which of them each configuration may hold."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from dfcompile.dfmodel_backend.kernel_sets.down_sets import DownSets, joined, list_down_sets, topological_orders
from dfcompile.dfmodel_backend.workload.design import Design


class FusionShape(Struct, frozen=True):
    """Kernels are numbered; sets of them are bit masks.

    Attributes:
        predecessors: of each kernel.
        allowed: of each configuration, in order of execution, the kernels that may be in it.
        most_kernels: of a configuration.
        stages: of a pipeline that follow each other, each with all these configurations.
        forward: kernels of the first pass where two passes take separate halves of the configurations, else 0 [ko24].
        backward: kernels of the second pass there; a kernel of neither may be in any configuration.
    """

    predecessors: tuple[int, ...]
    allowed: tuple[int, ...]
    most_kernels: int
    stages: int = 1
    forward: int = 0
    backward: int = 0

    @property
    def every_kernel(self) -> int:
        """Set of all kernels."""
        return (1 << len(self.predecessors)) - 1

    @property
    def is_unlimited(self) -> bool:
        """Whether kernels may be in any configuration, and there is one for each of them."""
        return len(self.allowed) >= len(self.predecessors) and set(self.allowed) <= {self.every_kernel}

    def lattice(self, most: int) -> DownSets | None:
        """Return the down-sets that a chain may visit, or None if there are more than ``most``.

        Where two passes take separate halves, no configuration starts or ends with the first pass unfinished and the
        second begun.
        """
        return list_down_sets(self._ordered, most)

    def intervals(self) -> DownSets:
        """Return the prefixes of a few topological orders: some of the down-sets, few whatever the graph."""
        return joined(topological_orders(self._ordered))

    @property
    def _ordered(self) -> tuple[int, ...]:
        return tuple(
            needed | self.forward if self.backward >> kernel & 1 else needed
            for kernel, needed in enumerate(self.predecessors)
        )

    def middle_pairs(self, lattice: DownSets) -> Iterator[tuple[int, int]]:
        """Yield pairs whose kernels are of both passes: of an odd number of configurations the middle is for both."""
        if not self.forward or len(self.allowed) % 2 == 0:
            return
        late = [after for after in lattice if after & self.forward == self.forward and after & self.backward]
        for before in lattice:
            if not before & self.backward and before & self.forward != self.forward:
                for after in late:
                    if before & ~after == 0 and (after ^ before).bit_count() <= self.most_kernels:
                        yield before, after


def shape_of(design: Design) -> FusionShape:
    """Return precedence and allowed configurations of a design's kernels, numbered by their position."""
    kernels = design.kernels
    has_halves = design.execution.batch.layers_in_graph == 1 and any(kernel.backward for kernel in kernels)
    forward, backward = (
        sum(1 << position for position, kernel in enumerate(kernels) if has_halves and kernel.backward is is_second)
        for is_second in (False, True)
    )
    position = {kernel.id: number for number, kernel in enumerate(kernels)}
    return FusionShape(
        predecessors=predecessors_of(
            len(kernels), [(position[one.source], position[one.target]) for one in design.edges]
        ),
        allowed=_allowed(design, forward, backward),
        most_kernels=1 if design.is_kernel_by_kernel else design.machine.cores,
        forward=forward,
        backward=backward,
    )


def predecessors_of(kernels: int, ends: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return the set of the direct predecessors of each kernel, given the ends of the edges."""
    masks = [0] * kernels
    for source, target in ends:
        masks[target] |= 1 << source
    return tuple(masks)


def _allowed(design: Design, forward: int, backward: int) -> tuple[int, ...]:
    """Return, per configuration, the kernels that may be in it; pins do not hold in a pipeline of stages.

    Args:
        design: of the kernels.
        forward: kernels that the later half does not hold.
        backward: kernels that the earlier half does not hold.
    """
    if design.is_pipelined:
        return ((1 << len(design.kernels)) - 1,) * design.slots_of_stage
    masks, slots = [], design.slots
    for slot in range(slots):
        pinned = sum(1 << number for number, one in enumerate(design.kernels) if one.pinned_config in (-1, slot))
        early, late = backward * (slot < slots // 2), forward * (slot >= (slots + 1) // 2)
        masks.append(pinned & ~early & ~late)
    return tuple(masks)
