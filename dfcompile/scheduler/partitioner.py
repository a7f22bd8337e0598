"""Partitioners as values: the decorator that makes them and the collector that finds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import UserError, nearest
from dfcompile.options import Effort
from dfcompile.plugins import Collected, PluginKind, faults_of, is_own, name_of
from dfcompile.scheduler.blocks import Blocks, check_blocks

Partition = Callable[[CanonicalDag, int], Blocks]


class Partitioner(Struct, frozen=True):
    """A named way to fill spatial blocks of at most P computational nodes.

    Attributes:
        name: under which options choose it.
        source: citation key.
        module: that defines it.
        partition: fills blocks that run one after another.
        overlapping: the same for schedules without barriers, where it differs; such a partitioner goes without
            barriers unless it is told otherwise. Its blocks may hold more than P tasks, their streaming components
            may not.
        other_efforts: what takes the place of ``partition`` and of ``overlapping`` with other efforts than the default.
        rivals: partitioners that this one is never longer than, by steady times; by exact ones they are tried again.
        lists: whether schedules without barriers and with exact times are also looked for task by task.
    """

    name: str
    source: str
    module: str
    partition: Partition
    overlapping: Partition | None = None
    other_efforts: tuple[tuple[Effort, Partition, Partition], ...] = ()
    rivals: tuple[Partitioner, ...] = ()
    lists: bool = False

    @property
    def origin(self) -> str:
        """Module and name of the function, such as ``mylab.partitioners.greedy``."""
        return f"{self.module}.{name_of(self.partition)}"

    @property
    def summary(self) -> str:
        """First line of the docstring."""
        return (self.partition.__doc__ or "").strip().partition("\n")[0]

    def blocks(self, dag: CanonicalDag, pes: int, *, barrier: bool, effort: Effort = Effort.DEFAULT) -> Blocks:
        """Fill blocks for schedules with or without barriers; those of a third party are checked.

        Raises:
            PluginError: the function of a third party raised, or what it returned is no partition for P elements.
        """
        others = {other: (partition, overlapping) for other, partition, overlapping in self.other_efforts}
        partition, overlapping = others.get(effort, (self.partition, self.overlapping))
        overlaps = not barrier and overlapping is not None
        fill = overlapping if overlaps and overlapping is not None else partition
        with faults_of("partitioner", f"{self.module}.{name_of(fill)}"):
            blocks = fill(dag, pes)
            if not is_own(self.module):
                check_blocks(dag, blocks, pes, overlaps=overlaps)
        return blocks


def partitioner(
    name: str,
    *,
    source: str,
    overlapping: Partition | None = None,
    other_efforts: tuple[tuple[Effort, Partition, Partition], ...] = (),
    rivals: tuple[Partitioner, ...] = (),
    lists: bool = False,
) -> Callable[[Partition], Partitioner]:
    """Make a `Partitioner` of a function ``(dag, pes) -> Blocks``."""

    def decorate(partition: Partition) -> Partitioner:
        return Partitioner(name, source, partition.__module__, partition, overlapping, other_efforts, rivals, lists)

    return decorate


PARTITIONERS: Final = PluginKind(
    "partitioner",
    Partitioner,
    "dfcompile.scheduler.partitioners",
    "dfcompile.partitioners",
    older_groups=("dfcompile.schedulers",),
)


def registered_partitioners() -> Collected[Partitioner]:
    """Return all partitioners: our own and those of installed plug-ins.

    Raises:
        RegistrationError: two modules claim one name.
    """
    return PARTITIONERS.collect()


def collect_partitioners() -> Mapping[str, Partitioner]:
    """Return all partitioners by name; see `registered_partitioners`."""
    return registered_partitioners().by_name


def find_partitioner(name: str, table: Mapping[str, Partitioner]) -> Partitioner:
    """Return the partitioner of a name.

    Raises:
        UserError: there is none.
    """
    if name not in table:
        raise UserError(f"partition {name!r}: unknown{nearest(name, table)}")
    return table[name]
