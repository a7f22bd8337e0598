"""Reads lists of streaming nodes, as FINN makes them: cycles of each, and words that pass between them per inference.

The JSON form, version ``dfcompile-nodes/1``: an object with ``format``, ``name``, ``nodes`` such as ``{"name": "mvau",
"cycles": 784, "latency": 3}`` and ``edges`` such as ``{"source": "swu", "target": "mvau", "words": 49, "depth": 2}``.
``cycles`` are those of an inference, ``exp_cycles_per_layer`` of FINN.
"""

from itertools import pairwise
from math import gcd

from dfcompile.actor_graphs.graph import LARGEST_NUMBER, MOST_PHASES, Actor, ActorGraph, Channel
from dfcompile.canonical_dag.forms.records import Fields
from dfcompile.errors import UserError, nearest

FORMAT = "dfcompile-nodes/1"


def graph_of_nodes(value: object) -> ActorGraph:
    """Return the graph of a list of nodes.

    A node goes through as many equal steps as the most words that pass one of its edges, as evenly as whole cycles
    allow. In the first cycle of a step it reads, and when the step ends it writes: word j of O after ``ceil(j I / O)``
    of I, as tasks of a canonical DAG do. What a step reads is gone from its FIFO after that cycle.

    Raises:
        UserError: one line that names the node or the edge.
    """
    top = Fields(value, "file", ("format", "name", "nodes", "edges"))
    nodes: dict[str, tuple[int, int]] = {}
    for row in top.rows("nodes", ("name", "cycles", "latency")):
        name = row.text("name")
        if name in nodes:
            raise UserError(f"{row.where}: found node {name!r} twice against once")
        nodes[name] = _number(row, "cycles", 1), _number(row, "latency", 0, 0)
    words = {name: [cycles] for name, (cycles, _) in nodes.items()}
    edges = []
    for row in top.rows("edges", ("source", "target", "words", "depth")):
        ends = row.text("source"), row.text("target")
        for end in ends:
            if end not in nodes:
                raise UserError(f"{row.where}: no node {end!r}{nearest(end, nodes)}")
            words[end].append(_number(row, "words", 1))
        edges.append((*ends, words[ends[0]][-1], _number(row, "depth", 1) if "depth" in row else None))
    steps = {name: _Steps(name, *words[name]) for name in nodes}
    numbers = {name: number for number, name in enumerate(nodes)}
    channels = tuple(
        Channel(
            f"{source} -> {target}",
            numbers[source],
            numbers[target],
            steps[source].written(count),
            steps[target].read(count),
            size=depth,
        )
        for source, target, count, depth in edges
    )
    actors = tuple(Actor(name, steps[name].cycles, latency) for name, (_, latency) in nodes.items())
    iterations = gcd(*(each.common for each in steps.values()))
    return ActorGraph(top.text("name", "nodes"), actors, channels, iterations)


def _number(row: Fields, name: str, least: int, default: int | None = None) -> int:
    value = row.number(name, default)
    if not least <= value <= LARGEST_NUMBER:
        raise UserError(f"{row.where}: found {name} {value} against {least} to {LARGEST_NUMBER}")
    return value


class _Steps:
    """The steps of a node until its pattern repeats.

    Attributes:
        common: how often the pattern repeats in an inference.
        cycles: of the phases: of each step its first cycle, and the rest where there is one.
    """

    def __init__(self, name: str, cycles: int, *words: int) -> None:
        """Divide the cycles of an inference.

        Raises:
            UserError: the node has no edge, or more words than cycles, or its pattern is too long.
        """
        self.common = gcd(cycles, *words)
        self._count, whole = max(words, default=0) // self.common, cycles // self.common
        if not self._count:
            raise UserError(f"node {name!r}: found no edge against one or more")
        if self._count > whole:
            raise UserError(f"node {name!r}: found {cycles} cycles against at least {max(words)}, its words on an edge")
        if self._count > MOST_PHASES:
            raise UserError(
                f"node {name!r}: found {self._count} steps before its pattern repeats, against at most {MOST_PHASES} "
                f"({cycles} cycles and its words have only {self.common} as common divisor)"
            )
        ends = [step * whole // self._count for step in range(self._count + 1)]
        self._lasting = [end - begin for begin, end in pairwise(ends)]
        self.cycles = tuple(part for lasts in self._lasting for part in ((1, lasts - 1) if lasts > 1 else (1,)))

    def read(self, words: int) -> tuple[int, ...]:
        """Return how many words of an edge each phase reads."""
        upto = [-(-step * words // (self.common * self._count)) for step in range(self._count + 1)]
        return self._in_phases(upto, is_first=True)

    def written(self, words: int) -> tuple[int, ...]:
        """Return how many words of an edge each phase writes."""
        upto = [step * words // (self.common * self._count) for step in range(self._count + 1)]
        return self._in_phases(upto, is_first=False)

    def _in_phases(self, upto: list[int], *, is_first: bool) -> tuple[int, ...]:
        found: list[int] = []
        for lasts, before, after in zip(self._lasting, upto, upto[1:], strict=False):
            moved = after - before
            found += [moved] if lasts == 1 else [moved, 0] if is_first else [0, moved]
        return tuple(found)
