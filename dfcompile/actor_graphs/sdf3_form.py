"""Reads graphs of actors from the XML of SDF3: ``sdf`` and ``csdf``."""

from collections.abc import Iterable, Iterator, Mapping
from math import lcm
from xml.etree import ElementTree as ET

from dfcompile.actor_graphs.graph import LARGEST_NUMBER, MOST_PHASES, Actor, ActorGraph, Channel
from dfcompile.canonical_dag.forms.reference import shortened
from dfcompile.errors import UserError, nearest

_KINDS = ("sdf", "csdf")
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
    digits = text.strip()
    if (
        not (digits.isascii() and digits.isdecimal())
        or len(digits) > len(str(LARGEST_NUMBER))
        or int(digits) > LARGEST_NUMBER
    ):
        raise UserError(
            f"{where}: found {what} {shortened(repr(text))} against whole numbers of at most {LARGEST_NUMBER}"
        )
    return int(digits)
