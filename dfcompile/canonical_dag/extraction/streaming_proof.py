"""The streamability proof: which edges between tasks need no memory, because both sides keep one order."""

from functools import lru_cache

from dfcompile.canonical_dag.extraction.families import Cut, TaskFamily
from dfcompile.canonical_dag.extraction.scopes import Access, MapScope
from dfcompile.canonical_dag.extraction.traversal import Traversal, is_round_robin, merged

_KEPT = 8192  # pairs of a write and a read of which it is known whether they keep one order: some MB
_NO_SCOPE = MapScope("", "", None, (), (), (), ())


def can_stream(producer: TaskFamily, write: Access, consumer: TaskFamily, read: Access) -> bool:
    """Whether every element arrives in the order in which the consumer wants it, each one once.

    * from one task: each consumer reads all that it writes, in the order in which it finishes the elements;
    * from a family to one task: the consumer takes one element of each member in turn;
    * from a family to a family of as many: member to member.
    """
    written = (producer.cuts, write.base, write.strides)
    return _keep_one_order(*written, consumer.cuts, read.base, read.strides)


@lru_cache(_KEPT)
def _keep_one_order(
    producer_cuts: tuple[Cut, ...],
    write_base: int,
    write_strides: tuple[int, ...],
    consumer_cuts: tuple[Cut, ...],
    read_base: int,
    read_strides: tuple[int, ...],
) -> bool:
    """Whether `can_stream` holds, which nothing but divided loops and places decides: no names, no other accesses."""
    producer, write = TaskFamily(_NO_SCOPE, producer_cuts, is_single=False), Access("", write_base, write_strides)
    consumer, read = TaskFamily(_NO_SCOPE, consumer_cuts, is_single=False), Access("", read_base, read_strides)
    written = producer.member(write).completion
    if written is None or not _is_disjoint(producer, write, written):
        return False
    wanted = consumer.member(read)
    if producer.members > 1 and consumer.members == 1:
        return producer.is_even and is_round_robin(wanted, written, producer.over_members(write))
    if wanted.normal != written or not _agree_on_last(producer, write, consumer, read):
        return False
    if producer.members == 1:
        return all(loop.stride == 0 for loop in merged(consumer.over_members(read)))
    return merged(producer.over_members(write)) == merged(consumer.over_members(read))


def _is_disjoint(producer: TaskFamily, write: Access, written: Traversal) -> bool:
    """Whether no element is written by two members: such an element is final only when both have ended."""
    return Traversal(0, (*producer.over_members(write), *written.loops)).is_injective


def _agree_on_last(producer: TaskFamily, write: Access, consumer: TaskFamily, read: Access) -> bool:
    if producer.is_even and consumer.is_even:
        return True
    written = producer.member(write, last=True).completion
    same_rows = producer.written(write) == consumer.iterations()
    return same_rows and written == consumer.member(read, last=True).normal
