"""What the audit finds of a model under all known expansions: the bounds over them, and the least work."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dfcompile.lowering import KnownAlternatives
from dfcompile.lowering.alternatives.known import OnnxAlternative, TaskScope


class There(NamedTuple):
    """From when an array can be read at the earliest, in cycles.

    Attributes:
        begun: as a stream.
        whole: from memory.
        writers: tasks that share a stream of it, at most.
    """

    begun: int
    whole: int
    writers: int


class Least(NamedTuple):
    """What something takes at least.

    Attributes:
        end: cycle in which it can have ended.
        work: cycles of all its tasks.
        there: the arrays that it writes.
    """

    end: int
    work: int
    there: Mapping[str, There]


_FROM_OUTSIDE = There(0, 0, 1)
Arrays = Mapping[str, There]
TasksOf = Callable[[Sequence[TaskScope], Arrays, set[str]], Least]  # by what is there, and what may come from tasks


def bound_over(known: KnownAlternatives, pes: int) -> int:
    """Return cycles that the model takes at least, whichever expansion each operator has, divided as these declare.

    Args:
        known: its operators under all their expansions.
        pes: number of processing elements P.
    """
    end, work = _least_of_all(known, lambda scopes, there, _: _tasks(scopes, there, pes))
    return max(end, _shared(work, pes))


def chain_cycles(known: KnownAlternatives, word: int) -> int:
    """Return the cycles of dependent work in every lowering, each scope in as many tasks as it can be.

    Args:
        known: operators of the model under all their expansions.
        word: most elements that a task takes in a cycle.
    """
    end, _ = _least_of_all(known, lambda scopes, there, on_chip: _chained(scopes, there, word, on_chip))
    return end


def _least_of_all(known: KnownAlternatives, tasks: TasksOf) -> tuple[int, int]:
    """Return the end and the work of the model, each operator by the best of its expansions."""
    there: dict[str, There] = {}
    end = work = 0
    for op in known.operators:
        operands = {f"x{place}": there[array] for place, array in op.inputs.items() if array in there}
        ways = [_lowered(way, operands, tasks) for way in op.expansions]
        for place, array in op.outputs.items():
            there[array] = _soonest(
                [done.there[way.results[place]] for way, done in zip(op.expansions, ways, strict=True)]
            )
        end = max(end, min(done.end for done in ways))
        work += min(done.work for done in ways)
    return end, work


def divided_work(known: KnownAlternatives) -> Mapping[str, int]:
    """Return the least work of each of the user's operators, into however many tasks its scopes are divided."""
    written = {array for op in known.operators for array in op.outputs.values()}
    work: dict[str, int] = {}
    for op in known.operators:
        streams = {f"x{place}" for place, array in op.inputs.items() if array in written}
        ways = [_undivided_work(way, streams) for way in op.expansions]
        work[op.origin] = work.get(op.origin, 0) + min(ways)
    return work


def _chained(scopes: Sequence[TaskScope], before: Arrays, word: int, on_chip: set[str]) -> Least:
    """Return what tasks take that wait for one another alone."""
    there: dict[str, There] = {}
    last = 0
    for scope in scopes:
        arrays = (there.get(array) or before.get(array, _FROM_OUTSIDE) for array, _ in scope.reads)
        begin = max((array.begun for array in arrays), default=0)
        takes_slices = _takes_slices(scope, on_chip)
        elements = min(scope.least_iterations, scope.least_written) if takes_slices else scope.least_iterations
        whole = begin + max(elements // word, 1)
        begun = begin + 1 if scope.can_send and scope.least_written > 1 else whole
        there[scope.write] = There(max(begun, there.get(scope.write, _FROM_OUTSIDE).begun), whole, 1)
        last = max(last, whole)
    return Least(last, 0, there)


def alone(known: KnownAlternatives, pes: int) -> Iterator[tuple[str, str, Mapping[str, int]]]:
    """Yield operator, type and cycles by name of the expansion, of all types that offer several, outer ones first."""

    def tasks(scopes: Sequence[TaskScope], there: Arrays, _: set[str]) -> Least:
        return _tasks(scopes, there, pes)

    for op in known.operators:
        if len(op.expansions) > 1:
            cycles = {way.name: _by_itself(_lowered(way, {}, set(), tasks), pes) for way in op.expansions}
            yield op.origin, op.op_type, cycles
        for inner in (inner for way in op.expansions for inner in way.operators if len(inner.scopes) > 1):
            cycles = {name: _by_itself(_tasks(scopes, {}, pes), pes) for name, scopes in inner.scopes.items()}
            yield op.origin, inner.op_type, cycles


def _by_itself(least: Least, pes: int) -> int:
    return max(least.end, _shared(least.work, pes))


def _lowered(way: OnnxAlternative, operands: Arrays, made: set[str], tasks: TasksOf) -> Least:
    """Return what an operator takes by one expansion: of each canonical operator in it the best of its own.

    Args:
        way: the expansion.
        operands: when they can be read.
        made: of these those that other operators make.
        tasks: what tasks take.
    """
    there, end, work, on_chip = dict(operands), 0, 0, _on_chip(way, made)
    for op in way.operators:
        choices = [tasks(scopes, there, on_chip) for scopes in op.scopes.values()]
        shared = set.intersection(*(set(choice.there) for choice in choices))  # the others are inside of one choice
        there |= {array: _soonest([choice.there[array] for choice in choices]) for array in shared}
        end = max(end, min(choice.end for choice in choices))
        work += min(choice.work for choice in choices)
    return Least(end, work, dict.fromkeys(way.results.values(), _FROM_OUTSIDE) | there)


def _tasks(scopes: Sequence[TaskScope], before: Arrays, pes: int) -> Least:
    """Return what tasks take that begin when what they read is there, as a stream where their order allows one."""
    there: dict[str, There] = {}
    ends, total = [0], 0
    for scope in scopes:
        begin = after = 0
        cycles = scope.written
        for array, can_stream in scope.reads:
            source, elements = there.get(array, before.get(array)), scope.iterations
            if source is not None and can_stream:
                begin, after = max(begin, source.begun), max(after, source.whole + 1)
                elements = _shared(elements, source.writers)
            elif source is not None:
                begin = max(begin, source.whole)
            cycles = max(cycles, elements)
        work = cycles * scope.members
        end = max(begin + cycles, begin + _shared(work, pes), after)
        ends.append(end)
        total += work
        own, other = There(begin if scope.can_send else end, end, scope.members), there.get(scope.write)
        if other is not None:  # two scopes write it: it is in memory
            whole = max(end, other.whole)
            own = There(whole, whole, scope.members + other.writers)
        there[scope.write] = own
    return Least(max(ends), total, there)


def _soonest(found: Sequence[There]) -> There:
    return There(
        min(each.begun for each in found), min(each.whole for each in found), max(each.writers for each in found)
    )


def _undivided_work(way: OnnxAlternative, streams: set[str]) -> int:
    """Return the work by one expansion: all iterations of what reads memory, else what is written at least."""
    on_chip = _on_chip(way, streams)
    return sum(
        min(sum(_least(scope, on_chip) for scope in choice) for choice in op.scopes.values()) for op in way.operators
    )


def _on_chip(way: OnnxAlternative, streams: set[str]) -> set[str]:
    """Return the arrays that an operator may take from tasks, some of them given."""
    scopes = [scope for op in way.operators for choice in op.scopes.values() for scope in choice]
    stored = {scope.write for scope in scopes if scope.is_stored}
    return streams | {scope.write for scope in scopes if scope.write not in stored}


def _takes_slices(scope: TaskScope, on_chip: set[str]) -> bool:
    return scope.visits_once and {array for array, _ in scope.reads} <= on_chip


def _least(scope: TaskScope, on_chip: set[str]) -> int:
    each = min(scope.written, scope.iterations) if _takes_slices(scope, on_chip) else scope.iterations
    return each * scope.members


def _shared(work: int, among: int) -> int:
    return -(-work // among)
