"""Files of graphs of actors: XML of SDF3 and lists of nodes; what is wrong is one line."""

import json

import pytest

from dfcompile.actor_graphs.graph import Actor, ActorGraph, Channel
from dfcompile.actor_graphs.reading import graph_of_text
from dfcompile.actor_graphs.sizes import minimal_sizes
from dfcompile.errors import UserError
from tests.unit.actor_graphs.graphs import CYCLO_STATIC, EXAMPLE, sdf3_of

XML = sdf3_of(EXAMPLE)
LIST = {
    "format": "dfcompile-nodes/1",
    "name": "fork",
    "nodes": [{"name": "a", "cycles": 12}, {"name": "b", "cycles": 12, "latency": 7}, {"name": "c", "cycles": 16}],
    "edges": [
        {"source": "a", "target": "b", "words": 6},
        {"source": "b", "target": "c", "words": 4, "depth": 9},
        {"source": "a", "target": "c", "words": 12},
    ],
}


@pytest.mark.parametrize("graph", [EXAMPLE, CYCLO_STATIC])
def test_the_xml_of_sdf3_is_the_graph(graph: ActorGraph) -> None:
    assert graph_of_text(sdf3_of(graph)) == graph


def test_state_tokens_sizes_and_processors_of_the_xml() -> None:
    state = '<port name="s" type="out" rate="1"/><port name="t" type="in" rate="1"/>'
    own = '<channel name="own" srcActor="a" srcPort="s" dstActor="a" dstPort="t" initialTokens="1"/></sdf>'
    size = '<sdfProperties><channelProperties channel="c1"><bufferSize sz="8"/></channelProperties>'
    slow = '<processor type="slow"><executionTime time="9"/></processor><processor'
    text = XML.replace('<port name="o0"', f'{state}<port name="o0"', 1).replace("</sdf>", own)
    text = text.replace('initialTokens="0"', 'initialTokens="2"', 1).replace("<sdfProperties>", size)
    text = text.replace("<processor", slow, 1)
    graph = graph_of_text(text)

    assert graph is not None
    assert graph.actors[0] == Actor("a", (1,))  # of the default processor
    assert graph.channels[0] == Channel("c1", 0, 1, (2,), (3,), 2, 8)
    assert graph.channels[2] == Channel("own", 0, 0, (1,), (1,), 1)
    assert minimal_sizes(graph).sizes[2] is None


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("<sdf3", "<!DOCTYPE a><sdf3", "xml: found a document type against none"),
        ("</sdf3>", "", "xml: no element found"),
        ('<sdf3 type="sdf"', '<sdf3 type="sadf"', "xml: found <sdf3 type='sadf'> against <sdf3> of type sdf or csdf"),
        ("<sdf name", "<csdf name", "xml: mismatched tag"),
        ("applicationGraph", "otherGraph", "xml: found 0 graphs of applications against one"),
        ('<actor name="b"', '<actor name="a"', "actor 'a': found two of this name against one"),
        ('<actor name="b"', '<actor nome="b"', "actor '': found no name against one"),
        ('actor="b"', 'actor="bb"', "actor 'b': found no executionTime of its processor against one"),
        ('time="2"', 'time="2.5"', "actor 'b': found executionTime '2.5' against whole numbers of at most"),
        ('rate="3"', 'rate="0"', "actor 'b': port 'i0': found a rate of 0 against 1 or more"),
        ('rate="3"', 'rate="-3"', "actor 'b': port 'i0': found rate '-3' against whole numbers"),
        ('rate="3"', f'rate="{10**13}"', "actor 'b': port 'i0': found rate '10000000000000' against whole numbers"),
        ('dstActor="b"', 'dstActor="bee"', r"channel 'c1': no actor 'bee' \(known: a, b, c\)"),
        ('dstPort="i0"', 'dstPort="i7"', "channel 'c1': found port 'i7' of actor 'b' against one of type in"),
        ('name="c2"', 'name="c1"', "channel 'c1': found two of this name against one"),
        ('<port name="o0"', '<port name="p" type="in" rate="1"/><port name="o0"', "port 'p': found no channel"),
        ('rate="3"', 'rate="3,4"', "channel 'c1'"),
    ],
)  # fmt: skip
def test_a_fault_of_the_xml_is_one_line(before: str, after: str, message: str) -> None:
    assert before in XML
    if message == "channel 'c1'":  # two phases where the next one has one: consistent, and read
        assert graph_of_text(XML.replace(before, after)) is not None
        return
    with pytest.raises(UserError, match=message):
        graph_of_text(XML.replace(before, after, 2 if "Graph" in before else 1))


def test_rates_that_do_not_fit_name_the_channel() -> None:
    text = XML.replace('name="c2"', 'name="c2" ').replace("</sdf>", '<channel name="x" srcActor="a" srcPort="p" '
        'dstActor="c" dstPort="q"/></sdf>')  # fmt: skip
    text = text.replace('<actor name="a" type="a">', '<actor name="a" type="a"><port name="p" type="out" rate="1"/>')
    text = text.replace('<actor name="c" type="c">', '<actor name="c" type="c"><port name="q" type="in" rate="2"/>')

    with pytest.raises(
        UserError, match=r"writes .* tokens for each that 'c' reads, against 1 \(the rates are inconsis"
    ):
        graph_of_text(text)


def test_a_node_goes_in_steps_through_what_it_reads_and_writes() -> None:
    graph = graph_of_text(json.dumps(LIST))

    assert graph is not None
    assert graph.iterations == 2  # of half an inference
    a, b, c = graph.actors
    assert a == Actor("a", (1, 1))  # 12 steps of a cycle: each writes a word to c, every second one to b
    assert b == Actor("b", (1,) * 6, latency=7)  # 6 steps of two cycles: reads in the first, writes in the second
    assert c == Actor("c", (1, 1, 1, 1))  # 12 steps, the third in each three of two cycles
    to_b, from_b, past = graph.channels
    assert (to_b.written, to_b.read) == ((0, 1), (1, 0, 1, 0, 1, 0))
    assert (from_b.written, from_b.read, from_b.size) == ((0, 0, 0, 1, 0, 1), (1, 0, 0, 0), 9)
    assert (past.written, past.read) == ((1, 1), (1, 1, 1, 0))


def test_what_is_no_graph_of_actors_is_left_to_others() -> None:
    assert graph_of_text("dfcompile-dag/1 g\n") is None
    assert graph_of_text('{"format": "dfcompile-dag/1", "name": "dfcompile-nodes/1"}') is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": [{"name": "a"}]}, r"nodes\[0\]: cycles None against a whole number"),
        ({"nodes": [{"name": "a", "cycles": 0}]}, r"nodes\[0\]: found cycles 0 against 1 to"),
        ({"nodes": [{"name": "a", "cycles": 1, "ii": 2}]}, r"nodes\[0\]: unknown field 'ii'"),
        ({"nodes": LIST["nodes"] * 2}, r"nodes\[3\]: found node 'a' twice against once"),  # type: ignore[operator]
        ({"edges": [{"source": "a", "target": "bb", "words": 1}]}, r"edges\[0\]: no node 'bb' \(did you mean 'b'\?\)"),
        ({"edges": [{"source": "a", "target": "b", "words": 13}]}, "node 'a': found 12 cycles against at least 13"),
        ({"edges": [{"source": "a", "target": "b", "words": 6}]}, "node 'c': found no edge against one or more"),
        ({"edges": [{"source": "a", "target": "b", "words": 6, "depth": 0}]}, r"\[0\]: found depth 0 against 1 to"),
        (
            {"nodes": [{"name": name, "cycles": 10**9 + 7} for name in "ab"],
             "edges": [{"source": "a", "target": "b", "words": 10**6}]},
            "node 'a': found 1000000 steps before its pattern repeats, against at most 100000",
        ),
    ],
)  # fmt: skip
def test_a_fault_of_a_list_is_one_line(change: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        graph_of_text(json.dumps({**LIST, **change}))
