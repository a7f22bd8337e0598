"""Tasks of a unit whose accesses are in the same cycles: one of them is replayed for all."""

from itertools import chain, pairwise
from typing import TypeVar

from msgspec import Struct

from dfcompile.scheduler.simulation.stretch import StreamingUnit

Value = TypeVar("Value")


class Represented(Struct, frozen=True, eq=False):
    """A unit with one task for all its twins.

    Attributes:
        unit: of those that stand for others or for themselves.
        release: cycle from which on each of them may run.
        by: number in it of the task that stands for each task of the whole unit.
    """

    unit: StreamingUnit
    release: tuple[int, ...]
    by: tuple[int, ...]

    def spread(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return a value of each task of the whole unit, given those of the tasks that stand for them."""
        return tuple(values[number] for number in self.by)


def without_twins(unit: StreamingUnit, release: tuple[int, ...]) -> Represented:
    """Leave out all but the first of tasks that do the same at the same times.

    Twins have one streamed edge, to or from the same neighbour, who reads or writes their edges one after the other;
    they have the same volumes and FIFOs, and wait for the same. Then times that suit one of them suit both: what the
    neighbour exchanges with the second it may exchange in the instant in which it did so with the first. These are
    all times, as there is one solution if nothing is stuck; and the whole unit is stuck only if this one is, since
    a circle of waits goes through it as well.

    Args:
        unit: the tasks.
        release: cycle from which on each of them may run.
    """
    node, edge = list(range(len(unit.nodes))), list(range(len(unit.edges)))
    for row, neighbour in chain(
        ((row, unit.source) for row in unit.inputs), ((row, unit.target) for row in unit.outputs)
    ):
        for before, after in pairwise(row):
            one, other = neighbour[before], neighbour[after]
            if unit.capacity[before] == unit.capacity[after] and _are_alike(unit, release, one, other):
                node[other], edge[after] = node[one], edge[before]
    nodes = [number for number, first in enumerate(node) if number == first]
    if len(nodes) == len(node):
        return Represented(unit, release, tuple(node))
    place = {number: place for place, number in enumerate(nodes)}
    by = tuple(place[first] for first in node)
    edges = [number for number, first in enumerate(edge) if number == first]
    return Represented(_unit_of(unit, nodes, edges, by), tuple(release[number] for number in nodes), by)


def _are_alike(unit: StreamingUnit, release: tuple[int, ...], one: int, other: int) -> bool:
    """Whether two tasks with the same neighbour have no other one, and the same volumes and waits."""
    return (
        len(unit.inputs[one]) + len(unit.outputs[one]) == 1
        and len(unit.inputs[other]) + len(unit.outputs[other]) == 1
        and unit.reads[one] == unit.reads[other]
        and unit.writes[one] == unit.writes[other]
        and release[one] == release[other]
        and unit.waits[one] == unit.waits[other]
    )


def _unit_of(unit: StreamingUnit, nodes: list[int], edges: list[int], by: tuple[int, ...]) -> StreamingUnit:
    """Return the part of a unit that has some of its nodes and edges; other nodes are ended by those in their place."""
    return StreamingUnit(
        nodes=tuple(unit.nodes[node] for node in nodes),
        edges=tuple(unit.edges[edge] for edge in edges),
        reads=tuple(unit.reads[node] for node in nodes),
        writes=tuple(unit.writes[node] for node in nodes),
        source=tuple(by[unit.source[edge]] for edge in edges),
        target=tuple(by[unit.target[edge]] for edge in edges),
        capacity=tuple(unit.capacity[edge] for edge in edges),
        waits=tuple(tuple(dict.fromkeys(by[other] for other in unit.waits[node])) for node in nodes),
    )
