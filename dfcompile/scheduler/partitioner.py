"""Partitioners as values: the decorator that makes them and the collector that finds them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dfcompile import plugins
from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import UserError, nearest
from dfcompile.scheduler.blocks import Blocks

Partition = Callable[[CanonicalDag, int], Blocks]

OWN_PARTITIONERS = "dfcompile.scheduler.partitioners"
ENTRY_POINTS = "dfcompile.schedulers"


@dataclass(frozen=True, slots=True)
class Partitioner:
    """A named way to fill spatial blocks of at most P computational nodes.

    Attributes:
        name: under which options choose it.
        source: citation key.
        module: that defines it.
        partition: fills blocks that run one after another.
        overlapping: the same for schedules without barriers, where it differs; such a partitioner goes without
            barriers unless it is told otherwise. Its blocks may hold more than P tasks, their streaming components
            may not.
    """

    name: str
    source: str
    module: str
    partition: Partition
    overlapping: Partition | None = None


def partitioner(name: str, *, source: str, overlapping: Partition | None = None) -> Callable[[Partition], Partitioner]:
    """Make a `Partitioner` of a function ``(dag, pes) -> Blocks``."""

    def decorate(partition: Partition) -> Partitioner:
        return Partitioner(name, source, partition.__module__, partition, overlapping)

    return decorate


def collect_partitioners() -> Mapping[str, Partitioner]:
    """Return all partitioners by name: our own and those of installed plug-ins.

    Raises:
        RegistrationError: two modules claim one name.
    """
    found = plugins.collect(Partitioner, OWN_PARTITIONERS, ENTRY_POINTS, key=lambda value: value.name)
    return {plugin.value.name: plugin.value for plugin in found}


def find_partitioner(name: str, table: Mapping[str, Partitioner]) -> Partitioner:
    """Return the partitioner of a name.

    Raises:
        UserError: there is none.
    """
    if name not in table:
        raise UserError(f"partition {name!r}: unknown{nearest(name, table)}")
    return table[name]
