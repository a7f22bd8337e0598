"""What may be fused of a design, whatever it costs."""

from dfcompile.dfmodel_backend.kernel_sets.shape import FusionShape
from dfcompile.dfmodel_backend.workload.design import Design


def shape_of(design: Design) -> FusionShape:
    """Return precedence and allowed configurations of a design's kernels, numbered by their position."""
    has_halves = design.execution.batch.layers_in_graph == 1 and any(kernel.backward for kernel in design.kernels)
    forward, backward = (_of_pass(design, is_second) for is_second in (False, True))
    return FusionShape(
        predecessors=_predecessors(design),
        allowed=_allowed(design, has_halves=has_halves),
        most_kernels=1 if design.is_kernel_by_kernel else design.machine.cores,
        forward=forward if has_halves else 0,
        backward=backward if has_halves else 0,
    )


def _of_pass(design: Design, is_second: bool) -> int:  # noqa: FBT001
    return sum(1 << position for position, kernel in enumerate(design.kernels) if kernel.backward is is_second)


def slot_count(design: Design) -> int:
    """Return how many configurations there are at most."""
    return design.execution.configurations or len(design.kernels)


def _predecessors(design: Design) -> tuple[int, ...]:
    position = {kernel.id: number for number, kernel in enumerate(design.kernels)}
    found = [0] * len(position)
    for edge in design.edges:
        found[position[edge.target]] |= 1 << position[edge.source]
    return tuple(found)


def _allowed(design: Design, *, has_halves: bool) -> tuple[int, ...]:
    """Return, per configuration, the kernels that may be in it; pins do not hold in a pipeline of stages."""
    slots = slot_count(design)
    if design.is_pipelined:
        slots = len(design.kernels) if design.is_kernel_by_kernel else slots
        return ((1 << len(design.kernels)) - 1,) * slots
    masks = []
    for slot in range(slots):
        mask = 0
        for position, kernel in enumerate(design.kernels):
            late = has_halves and kernel.backward and slot < slots // 2
            early = has_halves and kernel.backward is False and slot >= (slots + 1) // 2
            if kernel.pinned_config in (-1, slot) and not late and not early:
                mask |= 1 << position
        masks.append(mask)
    return tuple(masks)
