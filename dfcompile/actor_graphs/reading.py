"""Reads foreign designs: graphs of actors from the XML of SDF3, ``sdf`` and ``csdf``, and lists of streaming nodes.

A list of nodes has, as FINN makes it, the cycles of each, and the words that pass between them per inference. Its JSON
form, version ``dfcompile-nodes/1``: an object with ``format``, ``name``, ``nodes`` such as ``{"name": "mvau",
"cycles": 784, "latency": 3}`` and ``edges`` such as ``{"source": "swu", "target": "mvau", "words": 49, "depth": 2}``.
``cycles`` are those of an inference, ``exp_cycles_per_layer`` of FINN.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from math import gcd, lcm
from xml.etree import ElementTree as ET

from dfcompile.actor_graphs.graph import LARGEST_NUMBER, MOST_PHASES, Actor, ActorGraph, Channel
from dfcompile.canonical_dag.forms.records import Fields
from dfcompile.canonical_dag.forms.reference import shortened
from dfcompile.errors import UserError, nearest
from dfcompile.host.inputs import parsed_json

_KINDS = ("sdf", "csdf")
_DIGITS = re.compile(rf"[0-9]{{1,{len(str(LARGEST_NUMBER))}}}")
_ENTITIES = ("<!DOCTYPE", "<!ENTITY")


def graph_from_sdf3(text: str) -> ActorGraph:
    """Parse the XML of SDF3: actors, ports, channels, and of their properties execution times and sizes of buffers.

    Of several processors the first that is the default counts. What is said of mappings and networks is left alone.

    Raises:
        UserError: one line that names the actor, the port or the channel.
    """
    if any(word in text for word in _ENTITIES):
        raise UserError("xml: found a document type against none (entities are not read)")
    try:
        root = ET.fromstring(text.encode())  # noqa: S314  # no entities
    except ET.ParseError as error:
        raise UserError(f"xml: {error}") from None
    kind = root.get("type", "")
    if root.tag != "sdf3" or kind not in _KINDS:
        raise UserError(f"xml: found <{root.tag} type={kind!r}> against <sdf3> of type {' or '.join(_KINDS)}")
    graphs = root.findall(f"applicationGraph/{kind}")
    if len(graphs) != 1:
        raise UserError(f"xml: found {len(graphs)} graphs of applications against one")
    graph = graphs[0]
    properties = f"applicationGraph/{kind}Properties"
    times = {one.get("actor"): one for one in root.findall(f"{properties}/actorProperties")}
    sizes = {one.get("channel"): one.find("bufferSize") for one in root.findall(f"{properties}/channelProperties")}
    ports = _Ports()
    actors = tuple(ports.actor(name, one, times.get(name)) for name, one in _named("actor", graph.findall("actor")))
    numbers = {actor.name: number for number, actor in enumerate(actors)}
    channels = []
    for name, channel in _named("channel", graph.findall("channel")):
        where = f"channel {name!r}"
        (source, written), (target, read) = (ports.end(where, channel, *side, numbers) for side in _SIDES)
        tokens = _number(where, "initialTokens", channel.get("initialTokens", "0"))
        size = sizes.get(name)
        stated = None if size is None or size.get("sz") is None else _number(where, "bufferSize", size.get("sz", ""))
        channels.append(Channel(name, source, target, written, read, tokens, stated))
    ports.require_none()
    return ActorGraph(graph.get("name", "graph"), actors, tuple(channels))


class _Ports:
    """The ports of actors, until a channel takes them."""

    def __init__(self) -> None:
        self._rates: dict[tuple[str, str, str], tuple[int, ...]] = {}  # by direction, actor and port

    def actor(self, name: str, actor: ET.Element, properties: ET.Element | None) -> Actor:
        """Return an actor, and keep its ports; all have the phases of the longest lists together."""
        where = f"actor {name!r}"
        cycles = _numbers(where, "executionTime", _execution_time(where, properties))
        rates = {}
        for port, one in _named(f"{where}: port", actor.findall("port")):
            given = _numbers(f"{where}: port {port!r}", "rate", one.get("rate", ""))
            if not any(given):
                raise UserError(f"{where}: port {port!r}: found a rate of 0 against 1 or more")
            rates[one.get("type", ""), name, port] = given
        phases = lcm(len(cycles), *map(len, rates.values()))
        if phases > MOST_PHASES:
            raise UserError(f"{where}: found {phases} phases against at most {MOST_PHASES}")
        self._rates |= {port: given * (phases // len(given)) for port, given in rates.items()}
        return Actor(name, cycles * (phases // len(cycles)))

    def end(
        self, where: str, channel: ET.Element, side: str, direction: str, numbers: Mapping[str, int]
    ) -> tuple[int, tuple[int, ...]]:
        """Return the number of the actor at one end of a channel, and the rates of its port, which is taken then."""
        actor, port = channel.get(f"{side}Actor", ""), channel.get(f"{side}Port", "")
        if actor not in numbers:
            raise UserError(f"{where}: no actor {actor!r}{nearest(actor, numbers)}")
        rates = self._rates.pop((direction, actor, port), None)
        if rates is None:
            raise UserError(
                f"{where}: found port {port!r} of actor {actor!r} against one of type {direction} that is free"
            )
        return numbers[actor], rates

    def require_none(self) -> None:
        """Check that each port has a channel."""
        for _, actor, port in self._rates:
            raise UserError(f"actor {actor!r}: port {port!r}: found no channel against one")


_SIDES = (("src", "out"), ("dst", "in"))


def _named(what: str, elements: Iterable[ET.Element]) -> Iterator[tuple[str, ET.Element]]:
    """Yield elements by their names, each of which comes once."""
    seen = set[str]()
    for element in elements:
        name = element.get("name", "")
        if not name or name in seen:
            raise UserError(f"{what} {name!r}: found {'two of this name' if name else 'no name'} against one")
        seen.add(name)
        yield name, element


def _execution_time(where: str, properties: ET.Element | None) -> str:
    processors = [] if properties is None else properties.findall("processor")
    chosen = next((one for one in processors if one.get("default") == "true"), next(iter(processors), None))
    time = None if chosen is None else chosen.find("executionTime")
    if time is None:
        raise UserError(f"{where}: found no executionTime of its processor against one")
    return time.get("time", "")


def _numbers(where: str, what: str, text: str) -> tuple[int, ...]:
    return tuple(_number(where, what, word) for word in text.split(","))


def _number(where: str, what: str, text: str) -> int:
    found = _DIGITS.fullmatch(text.strip())
    if found is None or int(found[0]) > LARGEST_NUMBER:
        against = f"whole numbers of at most {LARGEST_NUMBER}"
        raise UserError(f"{where}: found {what} {shortened(repr(text))} against {against}")
    return int(found[0])


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
        nodes[name] = _amount(row, "cycles", 1), _amount(row, "latency", 0, 0)
    words = {name: [cycles] for name, (cycles, _) in nodes.items()}
    edges = []
    for row in top.rows("edges", ("source", "target", "words", "depth")):
        ends = row.text("source"), row.text("target")
        for end in ends:
            if end not in nodes:
                raise UserError(f"{row.where}: no node {end!r}{nearest(end, nodes)}")
            words[end].append(_amount(row, "words", 1))
        edges.append((*ends, words[ends[0]][-1], _amount(row, "depth", 1) if "depth" in row else None))
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


def _amount(row: Fields, name: str, least: int, default: int | None = None) -> int:
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


def graph_of_text(text: str) -> ActorGraph | None:
    """Return the graph of actors that a text is, XML of SDF3 or a list of nodes; ``None`` if it is something else.

    Raises:
        UserError: it begins as one of them, and is not right; one line.
    """
    begin = text.removeprefix("\ufeff").lstrip()
    if begin.startswith("<"):
        graph = graph_from_sdf3(begin)
    elif begin.startswith("{") and FORMAT in text:
        try:
            value = parsed_json(begin)
        except (ValueError, RecursionError) as error:
            raise UserError(f"json: {error} against a JSON object") from None
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            return None
        graph = graph_of_nodes(value)
    else:
        return None
    if not graph.channels:
        raise UserError(f"graph {graph.name!r}: found no channel against one or more")
    for channel in graph.channels:
        most = 2 * max(channel.read)
        if channel.is_state and channel.tokens >= most:
            raise UserError(
                f"channel {channel.name!r}: found {channel.tokens} tokens against fewer than {most}, with which "
                f"{graph.actors[channel.source].name!r} fires once at a time (an actor is one processing element)"
            )
    _ = graph.firings  # consistent
    return graph
