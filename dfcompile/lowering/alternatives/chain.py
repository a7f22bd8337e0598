"""The longest chain of dependent work that no known lowering avoids, on however many processing elements."""

from collections.abc import Mapping, Sequence

from dfcompile.lowering.alternatives.bound import is_sliced, streams_within
from dfcompile.lowering.alternatives.known import KnownAlternatives, OnnxAlternative, TaskScope

_Firsts = dict[str, int]  # by array: the cycle at which its first element can be there, at the earliest


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
    firsts: _Firsts = {}
    end = 0
    for op in alternatives.operators:
        given = {f"x{at}": firsts[array] for at, array in op.inputs.items() if array in firsts}
        ways = [_lowered(each, given, word) for each in op.expansions]
        for at, array in op.outputs.items():
            found = zip(op.expansions, ways, strict=True)
            firsts[array] = min(own.get(each.results[at], 0) for each, (own, _) in found)
        end = max(end, min(last for _, last in ways))
    return end


def _lowered(alternative: OnnxAlternative, given: Mapping[str, int], word: int) -> tuple[_Firsts, int]:
    """Return when the arrays of an operator can be there, and when its last task can have ended."""
    firsts, end = dict(given), 0
    streams = streams_within(alternative, set(given))
    for op in alternative.operators:
        ways = [_expanded(scopes, firsts, streams, word) for scopes in op.scopes.values()]
        shared = set.intersection(*(set(found) for found, _ in ways))  # others are within one of the expansions
        firsts |= {array: min(found[array] for found, _ in ways) for array in shared}
        end = max(end, min(last for _, last in ways))
    return firsts, end


def _expanded(
    scopes: Sequence[TaskScope], given: Mapping[str, int], streams: set[str], word: int
) -> tuple[_Firsts, int]:
    firsts: _Firsts = {}
    end = 0
    for scope in scopes:
        start = max((firsts.get(array, given.get(array, 0)) for array, _ in scope.reads), default=0)
        done = start + max(1, _least_cycles(scope, streams) // word)
        # A task that writes several elements may send the first one long before its end.
        first = start + 1 if scope.can_send and scope.least_written > 1 else done
        firsts[scope.write] = max(first, firsts.get(scope.write, 0))
        end = max(end, done)
    return firsts, end


def _least_cycles(scope: TaskScope, streams: set[str]) -> int:
    if is_sliced(scope, streams):
        return min(scope.least_written, scope.least_iterations)
    return scope.least_iterations
