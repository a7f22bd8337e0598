"""Bounds over the known expansions: what no schedule of a model can beat, however its operators are lowered.

The longest chain of dependent work holds for however many processing elements.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from dfcompile.expansion_names import natural_order
from dfcompile.frontend import ChosenExpansion
from dfcompile.lowering.alternatives.known import KnownAlternatives, OnnxAlternative, OperatorAlternatives, TaskScope

_WORTH_A_HINT = 20  # an expansion is named if it may save one part in so many of the makespan


class Arrival(Struct, frozen=True):
    """When an array can be there, in cycles, at the earliest.

    Attributes:
        ready: a task can start that takes it as a stream.
        end: it is complete.
        members: tasks, at most, that write it; a stream carries a share of it from each of them.
    """

    ready: int
    end: int
    members: int


_AT_ONCE = Arrival(0, 0, 1)


class OperatorBound(Struct, frozen=True):
    """What an operator takes at least on a number of processing elements, if everything it reads is there.

    Attributes:
        origin: the user's operator.
        op_type: of it or of the canonical operator within it that the expansions are of.
        cycles: by name of the expansion.
    """

    origin: str
    op_type: str
    cycles: Mapping[str, int]


class ExpansionBound(Struct, frozen=True):
    """What a model takes at least on a number of processing elements under any choice among the known expansions.

    Attributes:
        cycles: no streaming schedule of any lowering is shorter.
        operators: the same for each operator alone, per expansion, where there are several.
    """

    cycles: int
    operators: tuple[OperatorBound, ...]


class _Outcome(Struct):
    """Of one way to lower something: when its arrays can be there, when all of it can have ended, and its work."""

    arrivals: dict[str, Arrival]
    end: int = 0
    work: int = 0

    def cycles(self, pes: int) -> int:
        """Return what it takes at least if it has the machine for itself."""
        return max(self.end, -(-self.work // pes))


def expansion_bound(alternatives: KnownAlternatives, pes: int) -> ExpansionBound:
    """Return what every lowering of a model takes at least on P processing elements.

    A task of an operator starts when what it reads has begun to arrive, if some order of the elements allows a stream,
    or is complete; M tasks of W cycles each end ``max(W, ceil(M * W / P))`` later at the earliest, and after the last
    element of a stream one more is to be sent. Of several expansions the earliest arrival of each array counts, and the
    least work. The bound is the latest end, or all work shared by P: what holds for each operator under its best
    expansion holds for every combination of them.

    Args:
        alternatives: of the model.
        pes: number of processing elements.
    """
    alone = (bound for op in alternatives.operators for bound in _alone(op, pes))
    return ExpansionBound(_best(alternatives, partial(_lowered, _expanded, pes)).cycles(pes), tuple(alone))


def divided_bound(alternatives: KnownAlternatives, pes: int) -> ExpansionBound:
    """Return what every lowering takes at least on P processing elements, into however many tasks scopes are divided.

    See `least_work`.
    """
    return ExpansionBound(-(-sum(least_work(alternatives).values()) // pes), ())


def least_work(alternatives: KnownAlternatives) -> Mapping[str, int]:
    """Return the work of every operator that no lowering falls below, into however many tasks scopes are divided.

    Of each operator the expansion of least work counts. A task that reads from memory does all its iterations, however
    they are divided, and so does one that reads an element twice, which no stream brings again; one that takes streams
    from many in turn may read a slice from each, and then what it writes is all that is sure.
    """
    made = {array for op in alternatives.operators for array in op.outputs.values()}
    work: dict[str, int] = {}
    for op in alternatives.operators:
        streams = {f"x{at}" for at, array in op.inputs.items() if array in made}
        work[op.origin] = work.get(op.origin, 0) + min(_divided_work(each, streams) for each in op.expansions)
    return work


def streams_within(alternative: OnnxAlternative, streams: set[str]) -> set[str]:
    """Return the arrays of an operator that may be streams from tasks: operands that are, and what is not stored."""
    written = [scope for op in alternative.operators for scopes in op.scopes.values() for scope in scopes]
    return streams | ({scope.write for scope in written} - {scope.write for scope in written if scope.is_stored})


def is_sliced(scope: TaskScope, streams: set[str]) -> bool:
    """Whether a task may take a part of each of its streams, from many tasks in turn, and nothing from memory."""
    return scope.visits_once and all(array in streams for array, _ in scope.reads)


def _divided_work(alternative: OnnxAlternative, streams: set[str]) -> int:
    from_tasks = streams_within(alternative, streams)

    def least(scope: TaskScope) -> int:
        taken = is_sliced(scope, from_tasks)
        return scope.members * (min(scope.written, scope.iterations) if taken else scope.iterations)

    return sum(min(sum(map(least, scopes)) for scopes in op.scopes.values()) for op in alternative.operators)


def _alone(op: OperatorAlternatives, pes: int) -> Iterator[OperatorBound]:
    """Yield what an operator and the canonical ones in it take, expansion by expansion, where there are several."""
    if len(op.expansions) > 1:
        lowered = {each.name: _lowered(_expanded, pes, each, {}).cycles(pes) for each in op.expansions}
        yield OperatorBound(op.origin, op.op_type, lowered)
    for inner in (inner for each in op.expansions for inner in each.operators if len(inner.scopes) > 1):
        expanded = {name: _expanded(pes, scopes, {}, set()).cycles(pes) for name, scopes in inner.scopes.items()}
        yield OperatorBound(op.origin, inner.op_type, expanded)


# What scopes give, on a number (of elements, of words), when arrays can be there, of which these may be streams.
_Expand: TypeAlias = Callable[[int, Sequence[TaskScope], Mapping[str, Arrival], set[str]], _Outcome]


def _best(
    alternatives: KnownAlternatives, lowered: Callable[[OnnxAlternative, Mapping[str, Arrival]], _Outcome]
) -> _Outcome:
    """Return what no lowering of a model falls below: of every operator the best expansion, whatever the others'."""
    whole = _Outcome({})
    for op in alternatives.operators:
        given = {f"x{at}": whole.arrivals[array] for at, array in op.inputs.items() if array in whole.arrivals}
        outcomes = [lowered(each, given) for each in op.expansions]
        for at, array in op.outputs.items():
            ways = zip(outcomes, op.expansions, strict=True)
            whole.arrivals[array] = _earliest([outcome.arrivals[each.results[at]] for outcome, each in ways])
        whole.end = max(whole.end, min(outcome.end for outcome in outcomes))
        whole.work += min(outcome.work for outcome in outcomes)
    return whole


def _lowered(expand: _Expand, number: int, alternative: OnnxAlternative, given: Mapping[str, Arrival]) -> _Outcome:
    outcome, streams = _Outcome(dict(given)), streams_within(alternative, set(given))
    for op in alternative.operators:
        choices = [expand(number, scopes, outcome.arrivals, streams) for scopes in op.scopes.values()]
        for array in choices[0].arrivals:
            found = [choice.arrivals[array] for choice in choices if array in choice.arrivals]
            if len(found) == len(choices):  # others are within one of the expansions
                outcome.arrivals[array] = _earliest(found)
        outcome.end = max(outcome.end, min(choice.end for choice in choices))
        outcome.work += min(choice.work for choice in choices)
    for array in alternative.results.values():
        outcome.arrivals.setdefault(array, _AT_ONCE)  # a view of a constant
    return outcome


def _expanded(pes: int, scopes: Sequence[TaskScope], given: Mapping[str, Arrival], _: set[str]) -> _Outcome:
    outcome = _Outcome({})
    for scope in scopes:
        start, last, cycles = 0, 0, scope.written
        for array, can_stream in scope.reads:
            arrival = outcome.arrivals.get(array) or given.get(array)
            if arrival is not None:
                start = max(start, arrival.ready if can_stream else arrival.end)
                last = max(last, arrival.end + 1 if can_stream else 0)
            # What comes from memory is one per iteration; a stream from one of several producers is its share of them.
            producers = arrival.members if can_stream and arrival is not None else 1
            cycles = max(cycles, -(-scope.iterations // producers))
        work = cycles * scope.members
        end = max(start + max(cycles, -(-work // pes)), last)
        outcome.work += work
        outcome.end = max(outcome.end, end)
        arrival = Arrival(start if scope.can_send else end, end, scope.members)
        before = outcome.arrivals.get(scope.write)
        if before is not None:  # two scopes write a part each: it is in memory
            last = max(before.end, end)
            arrival = Arrival(last, last, before.members + scope.members)
        outcome.arrivals[scope.write] = arrival
    return outcome


def _earliest(arrivals: Sequence[Arrival]) -> Arrival:
    return Arrival(
        min(arrival.ready for arrival in arrivals),
        min(arrival.end for arrival in arrivals),
        max(arrival.members for arrival in arrivals),
    )


def longest_chain(alternatives: KnownAlternatives, word: int = 1) -> int:
    """Return the cycles from the first task to the last that no lowering and no number of elements avoids.

    Every scope is cut into as many tasks as it can be. A task starts when everything that it reads has begun to arrive,
    or is complete in memory. It takes its iterations where these read memory or an element twice; else a slice of each
    stream may be enough, and what it writes is all that is sure. Of several expansions the earliest arrival of each
    array counts.

    Args:
        alternatives: of the model.
        word: elements that a task takes in a cycle, at most.
    """
    return _best(alternatives, partial(_lowered, _chained, word)).end


def _chained(word: int, scopes: Sequence[TaskScope], given: Mapping[str, Arrival], streams: set[str]) -> _Outcome:
    outcome = _Outcome({})
    for scope in scopes:
        arrivals = (outcome.arrivals.get(array) or given.get(array, _AT_ONCE) for array, _ in scope.reads)
        start = max((arrival.ready for arrival in arrivals), default=0)
        written = scope.least_written if is_sliced(scope, streams) else scope.least_iterations
        done = start + max(1, min(written, scope.least_iterations) // word)
        # A task that writes several elements may send the first one long before its end.
        first = start + 1 if scope.can_send and scope.least_written > 1 else done
        first = max(first, outcome.arrivals.get(scope.write, _AT_ONCE).ready)
        outcome.arrivals[scope.write] = Arrival(first, first, 1)
        outcome.end = max(outcome.end, done)
    return outcome


class ExpansionHint(Struct, frozen=True):
    """An expansion that may be better than the chosen one for some operators of a type.

    Attributes:
        op_type: of the operators.
        name: of the expansion.
        origins: the user's operators.
        is_for_all: whether these are all operators of the type.
        chosen_cycles: what they take at least as chosen, one after another.
        hinted_cycles: the same with this expansion.
    """

    op_type: str
    name: str
    origins: tuple[str, ...]
    is_for_all: bool
    chosen_cycles: int
    hinted_cycles: int


def expansion_hints(
    bound: ExpansionBound, chosen: Sequence[ChosenExpansion], makespan_cycles: int
) -> tuple[ExpansionHint, ...]:
    """Return the expansions that may save a good part of a makespan, the most promising first."""
    names = {(each.origin, each.op_type): each.name for each in chosen}
    better: dict[tuple[str, str], dict[str, tuple[int, int]]] = {}
    hinted = set()
    for op in bound.operators:
        taken = names.get((op.origin, op.op_type))
        if taken is None or taken not in op.cycles or op.origin in hinted:  # what is within the operator comes after it
            continue
        best = min(op.cycles, key=lambda name: (op.cycles[name], name != taken, natural_order(name)))
        if best != taken:
            hinted.add(op.origin)
            before, after = better.setdefault((op.op_type, best), {}).get(op.origin, (0, 0))
            better[op.op_type, best][op.origin] = (before + op.cycles[taken], after + op.cycles[best])
    hints = []
    for (op_type, name), origins in better.items():
        before, after = (sum(cycles) for cycles in zip(*origins.values(), strict=True))
        is_for_all = len(origins) == len({origin for origin, other in names if other == op_type})
        hints.append(ExpansionHint(op_type, name, tuple(origins), is_for_all, before, after))
    worth = [hint for hint in hints if (hint.chosen_cycles - hint.hinted_cycles) * _WORTH_A_HINT >= makespan_cycles]
    return tuple(sorted(worth, key=lambda hint: hint.hinted_cycles - hint.chosen_cycles))
