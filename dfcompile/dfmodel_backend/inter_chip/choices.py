"""What is open in a design: degrees of parallelism, micro-batch size, tile count; and every way to settle it."""

from collections.abc import Iterator

from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.inter_chip.degrees import degrees_of
from dfcompile.dfmodel_backend.inter_chip.micro_batches import micro_batch_sizes
from dfcompile.dfmodel_backend.workload.design import Design, WorkloadKind
from dfcompile.errors import InfeasibleError, UserError
from dfcompile.records import replace


def degree_choices(design: Design, compatibility: Compatibility) -> tuple[Design, ...]:
    """Return the design once per choice of the chips along each dimension that it leaves open.

    Choices whose tensor parallel chips would share a head, or whose batch is no whole number of micro-batches, are
    left out where there is a choice.

    Raises:
        UserError: the given degrees do not fit the chips.
        InfeasibleError: there is only one choice, and its chips would share a head, or no choice is possible.
    """
    if all(link.chips for link in design.machine.links):
        degrees_of(design)
        require_whole_heads(design, compatibility)
        return (design,)
    found = []
    for chips in _factors(design):
        links = tuple(replace(link, chips=count) for link, count in zip(design.machine.links, chips, strict=True))
        chosen = replace(design, machine=replace(design.machine, links=links))
        degrees = degrees_of(chosen)
        if not micro_batch_sizes(chosen, degrees) or chosen.execution.batch.global_batch % degrees.data:
            continue
        try:
            require_whole_heads(chosen, compatibility)
        except InfeasibleError:
            continue
        found.append(chosen)
    if not found:
        raise InfeasibleError(
            f"topology {design.machine.topology}: no degrees of parallelism share {design.machine.chips} chips so that "
            "TP divides the heads and DP the batch (another num_chip, or degrees of your own)"
        )
    return tuple(found)


def _factors(design: Design) -> Iterator[tuple[int, ...]]:
    """Yield chips per dimension: given ones as they are, open ones so that the product is a copy's chips."""
    given = [link.chips for link in design.machine.links]
    rest = design.machine.chips // design.execution.batch.copies
    for chips in given:
        if chips and rest % chips:
            raise UserError(
                f"topology {design.machine.topology}: found {chips} chips along a dimension against a divisor of {rest}"
            )
        rest //= chips or 1
    for filled in _products(rest, given.count(0)):
        numbers = iter(filled)
        yield tuple(chips or next(numbers) for chips in given)


def _products(total: int, count: int) -> Iterator[tuple[int, ...]]:
    if count == 1:
        yield (total,)
        return
    for first in range(1, total + 1):
        if total % first == 0:
            for rest in _products(total // first, count - 1):
                yield (first, *rest)


def require_whole_heads(design: Design, compatibility: Compatibility) -> None:
    """Check that tensor parallel chips share whole heads of attention.

    Raises:
        InfeasibleError: naming the kernel, and the nearest degree that divides its heads.
    """
    if compatibility.heads_may_be_cut or design.execution.batch.kind is not WorkloadKind.LLM:
        return
    tensor = degrees_of(design).tensor
    for kernel in design.kernels:
        if kernel.outer > 1 and kernel.outer % tensor:
            fitting = max(degree for degree in range(1, tensor + 1) if kernel.outer % degree == 0)
            raise InfeasibleError(
                f"kernel {kernel.name!r}: found TP {tensor} against a divisor of its {kernel.outer} heads "
                f"(TP {fitting} divides them; --compat dfmodel cuts heads)"
            )


def micro_batch_choices(design: Design, compatibility: Compatibility) -> tuple[Design, ...]:
    """Return the design once per micro-batch size; where weights cost no traffic the smallest is never worse."""
    sizes = micro_batch_sizes(design, degrees_of(design))
    if compatibility.weights_not_read and compatibility.gradients_not_kept:
        sizes = sizes[:1]
    execution = design.execution
    return tuple(
        replace(design, execution=replace(execution, batch=replace(execution.batch, micro_batch=size)))
        for size in sizes
    )  # fmt: skip


def tile_counts(design: Design, compatibility: Compatibility) -> tuple[int, ...]:
    """Return every tile count that is the smallest with some size of tile; 1 if the sequence is not cut."""
    batch = design.execution.batch
    sequence = -(-batch.sequence // degrees_of(design).sequence)
    if not sequence:
        return (1,)
    if batch.tile and not compatibility.tile_size_is_a_hint:
        return (-(-sequence // batch.tile),)
    sizes = range(1, min(batch.tile or sequence, sequence) + 1)
    return tuple(sorted({-(-sequence // size) for size in sizes}))
