"""Graphs of actors for tests: those of SDF3's test bench, and random ones."""

from collections.abc import Mapping
from math import gcd

from hypothesis import strategies as st

from dfcompile.actor_graphs.graph import Actor, ActorGraph, Channel


def graph_of(name: str, cycles: Mapping[str, str | int], channels: str) -> ActorGraph:
    """Return a graph: channels as ``a 2,1 3 b`` and, of what is there in the beginning, ``a 2,1 3 b 4``."""
    numbers = {actor: number for number, actor in enumerate(cycles)}

    def listed(text: object) -> tuple[int, ...]:
        return tuple(map(int, str(text).split(",")))

    def channel(number: int, source: str, written: str, read: str, target: str, tokens: str = "0") -> Channel:
        ends = numbers[source], numbers[target]
        return Channel(f"c{number}", *ends, listed(written), listed(read), int(tokens))

    actors = tuple(Actor(actor, listed(time)) for actor, time in cycles.items())
    return ActorGraph(
        name, actors, tuple(channel(at, *text.split()) for at, text in enumerate(channels.split("; "), 1))
    )


def _unit(names: str) -> dict[str, str | int]:
    return dict.fromkeys(names.split(), 1)


_RATES = "a 1 1 b; b 2 3 c; c 2 7 d; d 8 7 e; e 5 1 f"
# The test graphs of SDF3 (sdf/testbench, csdf/testbench), without what actors hand to themselves.
EXAMPLE = graph_of("example", {"a": 1, "b": 2, "c": 2}, "a 2 3 b; b 1 2 c")  # of [stuijk06]
SAMPLE_RATE = graph_of("samplerate", {"a": 5, "b": 2, "c": 3, "d": 1, "e": 4, "f": 6}, _RATES)
CD_TO_DAT = graph_of("cd2dat", _unit("a b c d e f"), _RATES)
MODEM = graph_of(
    "modem",
    _unit("fork1 biq bi add ac fork2 conj mul1 in filt hil eq mul2 deci deco out"),
    "fork1 1 1 biq; fork1 1 1 bi; biq 1 1 add; bi 1 1 add; add 1 1 ac; ac 2 1 fork2; fork2 1 2 conj; fork2 1 2 mul1; "
    "conj 2 2 mul2; mul1 2 2 deci; mul2 2 2 eq 2; in 1 1 filt; filt 1 8 hil; hil 2 4 eq; eq 2 2 mul1; deci 2 2 mul2; "
    "deci 2 2 deco; deco 1 1 out; deci 1 1 fork1 1",
)
SATELLITE = graph_of(
    "satellite",
    _unit("a b c d e f g h i j k l m n p q r s t u v w"),
    "a 1 4 b; b 1 11 c; c 1 1 g; c 10 1 p; d 1 4 e; e 1 11 f; f 1 1 k; f 10 1 p; g 1 1 h; h 11 11 i; i 10 1 j; "
    "k 1 1 l; l 11 11 m; m 10 1 n; p 1 240 q; p 1 240 r; q 240 1 w; r 240 1 w; n 1 1 p; n 1 1 s; s 1 1 u; j 1 1 p; "
    "j 1 1 t; t 1 1 u; u 1 240 v; v 240 1 w",
)
H263 = graph_of(
    "h263decoder",
    {"vld": 26018, "iq": 559, "idct": 486, "mc": 10958},
    "vld 594 1 iq; iq 1 1 idct; idct 1 594 mc",
)
CYCLO_STATIC = graph_of("csdf", {"a": "1,3", "b": "2,2", "c": "2,3"}, "a 3,1 4,2 b; b 2,4 6,6 c")


@st.composite
def actor_graphs(draw: st.DrawFn, fewest: int = 2, most: int = 4) -> ActorGraph:
    """Draw consistent graphs of some actors of up to three phases, some with circles."""
    count = draw(st.integers(fewest, most))
    rounds = [draw(st.integers(1, 3)) for _ in range(count)]
    phases = [draw(st.integers(1, 3)) for _ in range(count)]

    def divided(tokens: int, parts: int) -> tuple[int, ...]:
        cuts = sorted(draw(st.integers(0, tokens)) for _ in range(parts - 1))
        return tuple(end - begin for begin, end in zip([0, *cuts], [*cuts, tokens], strict=True))

    channels = []
    for at in range(draw(st.integers(count - 1, count + 2))):
        ends = (at, at + 1) if at < count - 1 else (draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1)))
        source, target = ends if draw(st.booleans()) or at >= count - 1 else ends[::-1]
        times = draw(st.integers(1, 2))
        common = gcd(rounds[source], rounds[target])
        written = divided(times * rounds[target] // common, phases[source])
        read = divided(times * rounds[source] // common, phases[target])
        channels.append(Channel(f"c{at}", source, target, written, read, draw(st.integers(0, 8))))
    actors = tuple(
        Actor(f"a{at}", tuple(draw(st.integers(0 if at else 1, 5)) for _ in range(phases[at])), draw(st.integers(0, 3)))
        for at in range(count)
    )
    return ActorGraph("drawn", actors, tuple(channels), draw(st.integers(1, 3)))


def sdf3_of(graph: ActorGraph) -> str:
    """Return a graph as the XML of SDF3."""
    kind = "csdf" if any(len(actor.cycles) > 1 for actor in graph.actors) else "sdf"
    ports: dict[int, list[str]] = {number: [] for number in range(len(graph.actors))}
    channels = []
    for number, one in enumerate(graph.channels):
        sides = (("src", "out", one.source, one.written), ("dst", "in", one.target, one.read))
        ends = []
        for side, direction, actor, rates in sides:
            name = f"{direction[0]}{number}"
            ports[actor].append(f'<port name="{name}" type="{direction}" rate="{",".join(map(str, rates))}"/>')
            ends.append(f'{side}Actor="{graph.actors[actor].name}" {side}Port="{name}"')
        channels.append(f'<channel name="{one.name}" {" ".join(ends)} initialTokens="{one.tokens}"/>')
    actors = [
        f'<actor name="{actor.name}" type="{actor.name}">{"".join(ports[number])}</actor>'
        for number, actor in enumerate(graph.actors)
    ]
    times = [
        f'<actorProperties actor="{actor.name}"><processor type="p" default="true"><executionTime '
        f'time="{",".join(map(str, actor.cycles))}"/></processor></actorProperties>'
        for actor in graph.actors
    ]
    body = f'<{kind} name="{graph.name}" type="t">{"".join((*actors, *channels))}</{kind}>'
    properties = f"<{kind}Properties>{''.join(times)}</{kind}Properties>"
    schema = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="sdf3-sdf.xsd"'
    application = f'<applicationGraph name="g">{body}{properties}</applicationGraph>'
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return f'{head}\n<sdf3 type="{kind}" version="1.0" {schema}>{application}</sdf3>\n'
