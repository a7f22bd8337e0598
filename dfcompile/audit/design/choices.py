"""How many choices a design file leaves: degrees of parallelism, sizes of micro-batches, tiles of the sequence."""

import math
from collections.abc import Iterator, Sequence

from dfcompile.dfmodel_backend.check.decided_design import Groups
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.workload.design import Design, WorkloadKind
from dfcompile.records import replace


def count_of_choices(asked: Design, compatibility: Compatibility) -> int:
    """Return how many ways there are to settle what a design leaves open.

    Args:
        asked: as the file has it; open are chips along a dimension, micro-batches and tiles of 0.
        compatibility: flaws to repeat.
    """
    is_open = not all(link.chips for link in asked.machine.links)
    total = 0
    for chips in _divided(asked.machine.chips // asked.execution.batch.copies, asked):
        links = tuple(replace(link, chips=count) for link, count in zip(asked.machine.links, chips, strict=True))
        groups = Groups(replace(asked, machine=replace(asked.machine, links=links)))
        if not is_open or _is_possible(asked, groups, compatibility):
            total += _micro_batches(asked, groups, compatibility) * _tiles(asked, groups, compatibility)
    return total


def _divided(chips: int, asked: Design) -> Iterator[Sequence[int]]:
    """Yield chips along each dimension whose product is all of them; what is given stays."""

    def rest(left: int, links: Sequence[int]) -> Iterator[Sequence[int]]:
        if not links:
            yield from [()] if left == 1 else []
            return
        for count in [links[0]] if links[0] else range(1, left + 1):
            if left % count == 0:
                for others in rest(left // count, links[1:]):
                    yield (count, *others)

    yield from rest(chips, [link.chips for link in asked.machine.links])


def _is_possible(asked: Design, groups: Groups, compatibility: Compatibility) -> bool:
    """Return whether data parallel groups share a batch, and tensor parallel chips whole heads."""
    batch = asked.execution.batch
    if batch.global_batch % groups.data:
        return False
    if compatibility.heads_may_be_cut or batch.kind is not WorkloadKind.LLM:
        return True
    return all(kernel.outer == 1 or kernel.outer % groups.tensor == 0 for kernel in asked.kernels)


def _micro_batches(asked: Design, groups: Groups, compatibility: Compatibility) -> int:
    """Return how many sizes of micro-batches there are; the smallest is enough where nothing is read for each."""
    batch = asked.execution.batch
    if batch.micro_batch or batch.kind is not WorkloadKind.LLM:
        return 1
    share, left = divmod(batch.global_batch, groups.data)
    if left:
        return 0
    if compatibility.weights_not_read and compatibility.gradients_not_kept:
        return 1
    return sum(share % size == 0 for size in range(1, share + 1))


def _tiles(asked: Design, groups: Groups, compatibility: Compatibility) -> int:
    """Return how many different numbers of tiles there are."""
    batch = asked.execution.batch
    sequence = math.ceil(batch.sequence / groups.sequence)
    if not sequence or (batch.tile and not compatibility.tile_size_is_a_hint):
        return 1
    return len({math.ceil(sequence / size) for size in range(1, min(batch.tile or sequence, sequence) + 1)})
