"""Executions of graphs of actors, and the sizes of their channels, against a plain execution in time."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.actor_graphs import execution
from dfcompile.actor_graphs.execution import Execution
from dfcompile.actor_graphs.graph import Actor, ActorGraph, Channel
from dfcompile.actor_graphs.sizes import least_period, minimal_sizes, sized_as_stated
from dfcompile.audit.actor_graphs import plain_period
from dfcompile.errors import UserError
from dfcompile.records import replace
from tests.examples import examples
from tests.unit.actor_graphs.graphs import (
    CD_TO_DAT,
    CYCLO_STATIC,
    EXAMPLE,
    H263,
    MODEM,
    SAMPLE_RATE,
    SATELLITE,
    actor_graphs,
    graph_of,
)


@examples(300)
@given(actor_graphs(), st.data())
def test_with_any_sizes_it_takes_what_a_plain_execution_takes(graph: ActorGraph, data: st.DataObject) -> None:
    sizes = tuple(
        None if one.is_state else one.tokens + data.draw(st.integers(0, 9), label=one.name) for one in graph.channels
    )
    large = tuple(None if one.is_state else one.tokens + 200 for one in graph.channels)
    if plain_period(graph, large) is None:
        with pytest.raises(UserError, match="a deadlock with channels of any size"):
            sized_as_stated(graph, sizes)
        return
    found, plain = sized_as_stated(graph, sizes).execution, plain_period(graph, sizes)

    assert plain == (None if found.period_cycles is None else (found.period_cycles, found.first_cycles))
    assert (found.period_cycles is None) == bool(found.waits)


@examples(60)
@given(actor_graphs() | actor_graphs(7, 9))  # of more than six actors some are executed without the others
def test_no_minimal_size_can_be_smaller(graph: ActorGraph) -> None:
    assume(plain_period(graph, tuple(one.tokens + 200 for one in graph.channels)) is not None)
    sized = minimal_sizes(graph)
    plain = plain_period(graph, sized.sizes)

    assert plain is not None
    assert plain[0] == sized.least_period_cycles == sized.execution.period_cycles
    ample = plain_period(graph, tuple(None if size is None else 3 * size + 100 for size in sized.sizes))
    assert ample is not None
    assert ample[0] == plain[0]
    for number, size in enumerate(sized.sizes):
        if size is not None and size > graph.channels[number].tokens:
            fewer = plain_period(graph, (*sized.sizes[:number], size - 1, *sized.sizes[number + 1 :]))
            assert fewer is None or fewer[0] > plain[0]


@pytest.mark.parametrize(
    ("graph", "least", "total", "period", "smallest", "slow"),
    [
        (EXAMPLE, 6, 10, 4, (4, 2), 7),
        (SAMPLE_RATE, 32, 34, 960, (1, 4, 8, 14, 5), 1088),
        (MODEM, 38, 40, 16, None, 32),
        (SATELLITE, 1542, 1544, 1056, None, 1320),
    ],
)
def test_sizes_of_graphs_of_sdf3(
    graph: ActorGraph, least: int, total: int, period: int, smallest: tuple[int, ...] | None, slow: int
) -> None:
    """Tokens of all channels: the least without a deadlock, and at the largest throughput."""
    without = tuple(channel.least_size for channel in graph.channels)
    sized = minimal_sizes(graph)

    assert smallest in (None, without)
    assert (sum(without), sum(filter(None, sized.sizes))) == (least, total)
    assert sized.least_period_cycles == period
    assert sized_as_stated(graph, without).execution.period_cycles == slow


def test_others_of_the_same_examples() -> None:
    assert sum(H263.firings) == 1190
    assert minimal_sizes(H263).sizes == (594 + 47, 2, 594 + 20)  # while vld works 46.5, and mc 19.6 blocks pass
    assert least_period(CD_TO_DAT) == 160  # of e: 32 firings, of f: 160
    assert CD_TO_DAT.firings == (147, 147, 98, 28, 32, 160)  # [bhattacharyya96]
    assert CYCLO_STATIC.firings == (6, 4, 2)
    assert minimal_sizes(CYCLO_STATIC).sizes == (8, 8)


def test_a_circle_sets_the_pace_and_a_deadlock_says_who_waits() -> None:
    circle = graph_of("circle", {"a": 3, "b": 4}, "a 1 1 b; b 1 1 a 1")
    assert minimal_sizes(circle).least_period_cycles == 7
    two = replace(circle, channels=(circle.channels[0], replace(circle.channels[1], tokens=2)))
    assert minimal_sizes(two).least_period_cycles == Fraction(4)
    empty = replace(circle, channels=(circle.channels[0], replace(circle.channels[1], tokens=0)))
    with pytest.raises(UserError, match=r"any size \('a' waits for tokens from 'b' in 'c2'; 'b' waits for tokens from"):
        minimal_sizes(empty)
    small = sized_as_stated(EXAMPLE, (3, 2)).execution
    assert small.waits == (
        "'a' waits for places for tokens to 'b' in 'c1'",
        "'b' waits for tokens from 'a' in 'c1'",
    )


def test_what_has_no_schedule_is_one_line() -> None:
    with pytest.raises(UserError, match="channel 'c2': 'b' writes 1/2 tokens for each that 'c' reads, against 1"):
        _ = graph_of("g", {"a": 1, "b": 1, "c": 1}, "a 1 1 b; b 1 1 c; a 2 1 c").firings
    with pytest.raises(UserError, match="actor 'c': no way to 'a' against one graph"):
        _ = graph_of("g", {"a": 1, "b": 1, "c": 1, "d": 1}, "a 1 1 b; c 1 1 d").firings
    with pytest.raises(UserError, match="found no actor that takes time, against one at least"):
        minimal_sizes(graph_of("g", {"a": 0, "b": 0}, "a 1 1 b"))
    with pytest.raises(UserError, match="channel 'c1': found 3 tokens in the beginning against a size of 2"):
        sized_as_stated(graph_of("g", {"a": 1, "b": 1}, "a 1 1 b 3"), (2,))


def test_iterations_that_belong_together_are_counted_together() -> None:
    actors, channel = (Actor("a", (2,)), Actor("b", (3,), latency=5)), Channel("c", 0, 1, (1,), (1,))
    one = minimal_sizes(ActorGraph("g", actors, (channel,)))
    many = minimal_sizes(ActorGraph("g", actors, (channel,), iterations=1000))

    assert one.execution == Execution(Fraction(3), first_cycles=5)
    assert many.execution == Execution(Fraction(3000), first_cycles=3002)
    assert many.sizes == one.sizes


def test_what_takes_too_long_to_repeat_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "MOST_FIRINGS", 10_000)
    slow = graph_of("slow", {"a": 10**6, "b": 10**6 + 1}, "a 1 1 b")  # a runs ahead by a token in a million

    assert minimal_sizes(slow).sizes == (2,)
    with pytest.raises(UserError, match="graph 'slow': found more than 10000 firings before its execution repeats"):
        sized_as_stated(slow, (10**6,))
