"""The sharding with which a graph takes the least time on chips of a system, and a bound on all shardings.

What every mapping takes at least adds up over kernels and tensors: compute with no core idle, DRAM bytes that none
avoids, exchanges. A beam over kernels in topological order finds shardings that are good by that; the best are fused
and improved kernel by kernel. A search tree over all shardings with the same sums as bounds then proves the optimum, if
its nodes suffice. Where a sharding takes no longer than the bound on all of them, what is left is to find one that
takes as long, exchanges less and splits fewer loops. All budgets count work, never time.
"""

import math
from collections.abc import Callable, Iterator

from msgspec import Struct, field

from dfcompile.dfmodel_backend.evaluate.graphs import Mapping
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.sharding.graphs import WHOLE, Choice, Sharding, SharedGraph, SplitGraph
from dfcompile.dfmodel_backend.solve.sharding_sums import NS_PER_S, ShardingSums, Sums
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph
from dfcompile.errors import InfeasibleError

BEAM = 200  # partial shardings times choices of a kernel that are looked at, per kernel
WIDEST = 24  # partial shardings that are kept
# Of compute, memory and network; the first are told apart by the least time before.
WEIGHTS = ((1.0, 1.0, 1.0), (1.0, 1.0, 4.0), (1.0, 4.0, 1.0))
LEAST_EXCHANGE = (1.0, 1.0, 1000.0)
SIMPLEST = (0.0, 0.0, 0.0)  # of those that take no longer than the bound on all of them
NODES = 100_000  # of the search tree, times the number of kernels
EVALUATIONS = 3_000  # shardings that are fused for a number of chips, times the square of the number of kernels
MOST_EVALUATIONS = 40
TIE = 1e-12

Evaluate = Callable[[SharedGraph], Mapping]
State = tuple[tuple[Choice, ...], Sums]  # choices of the first kernels, and what they take


class Found(Struct, frozen=True):
    """A sharding and its mapping."""

    share: SharedGraph
    mapping: Mapping
    splits: int

    @property
    def rank(self) -> tuple[float, float, int]:
        """Time, bytes of messages, loops that are split."""
        return (self.mapping.figures.time_s, self.share.network_bytes, self.splits)


class _Best(Struct, eq=False):
    """The best sharding so far, and the least time that one might have which was not looked at."""

    found: Found | None = None
    bound_s: float = math.inf
    refused: InfeasibleError | None = None
    seen: dict[tuple[Choice, ...], Found | None] = field(default_factory=dict)

    @property
    def time_s(self) -> float:
        return math.inf if self.found is None else self.found.mapping.figures.time_s


class ShardingSearch:
    """Finds the sharding of a graph on all chips of a system."""

    def __init__(self, graph: DataflowGraph, system: System, options: MappingOptions, evaluate: Evaluate) -> None:
        self.system = system
        self._evaluate = evaluate
        self._split = SplitGraph(graph, system)
        self._costs = ShardingSums(self._split, system, options)
        self._names = [kernel.name for kernel in graph.kernels]

    @property
    def bound_s(self) -> float:
        """A time that no mapping of any sharding beats."""
        return self._costs.bound_s

    def shared(self, sharding: Sharding) -> SharedGraph:
        """Return what one chip has under a sharding."""
        return self._split.shared(sharding)

    def of_least_exchange(self) -> Sharding:
        """Return a sharding that exchanges for the least time, and of those one that computes and reads for it."""
        chosen, _ = self._beam(LEAST_EXCHANGE)[0]
        return dict(zip(self._names, chosen, strict=True))

    def best(self, below_s: float = math.inf, parts: int = 1) -> tuple[Found | None, float, InfeasibleError | None]:
        """Return the best sharding, a time that no sharding beats, and why there is none, if there is none.

        Args:
            below_s: a time that is known: if nothing can be below, nothing is looked at.
            parts: of the network that have as many chips, and are searched as well.
        """
        best = _Best()
        if self.bound_s >= below_s * (1 - TIE):
            return None, self.bound_s, None
        budget = max(4, min(MOST_EVALUATIONS, EVALUATIONS // max(1, len(self._names)) ** 2) // parts)
        beam = self._beams()
        for chosen, sums in beam[: max(2, budget // 8)]:
            if not _cannot_be_better(self._costs.least_ns(sums, len(chosen)) / NS_PER_S, sums, best):
                self._look(chosen, best)
        if best.time_s <= self.bound_s * (1 + TIE):
            self._look(self._beam(SIMPLEST)[0][0], best)
        else:
            self._improve(best, budget // 2)
            self._tree(best, budget // 2)
        bound_s = min(best.bound_s, best.time_s)
        return best.found, bound_s, best.refused

    def _beams(self) -> list[State]:
        """Return shardings that take the least by their sums, the best first: each found under one of several weights.

        What overlaps takes the longest of three times; whether a kernel should read more or exchange more depends on
        which of them that will be, and is settled for all kernels alike by weights.
        """
        found = {state[0]: state for weights in WEIGHTS for state in self._beam(weights)}
        return sorted(found.values(), key=lambda state: self._score(state[1], len(self._names), WEIGHTS[0]))

    def _beam(self, weights: tuple[float, float, float]) -> list[State]:
        """Return shardings that are good under weights of compute, memory and network."""
        states: list[State] = [((), Sums())]
        for number, name in enumerate(self._names):
            grown = [longer for state in states for longer in self._grown(state)]
            kept: dict[tuple[Choice, ...], State] = {}
            for chosen, sums in sorted(grown, key=lambda state: self._score(state[1], number + 1, weights)):
                kept.setdefault(tuple(chosen[place] for place in self._costs.open_places[number]), (chosen, sums))
            width = max(4, min(WIDEST, BEAM // len(self._split.choices[name])))
            states = list(kept.values())[:width]
        return states

    def _grown(self, state: State) -> list[State]:
        """Return a sharding of the first kernels with every choice of the next one."""
        chosen, sums = state
        choices = self._split.choices[self._names[len(chosen)]]
        return [((*chosen, choice), sums.plus(self._costs.added(chosen, choice))) for choice in choices]

    def _score(self, sums: Sums, settled: int, weights: tuple[float, float, float]) -> tuple[float, float, float, int]:
        least_ns = self._costs.least_ns(sums, settled) if weights in (WEIGHTS[0], SIMPLEST) else 0.0
        if weights == SIMPLEST:
            least_ns = max(least_ns, self.bound_s * NS_PER_S * (1 + TIE))
        parts = zip(weights, (sums.compute_ns, sums.memory_ns, sums.network_ns), strict=True)
        return (least_ns, sum(weight * part for weight, part in parts), sums.message_bytes, sums.splits)

    def _look(self, chosen: tuple[Choice, ...], best: _Best) -> Found | None:
        """Fuse a sharding and keep it if it is the best."""
        if chosen in best.seen:
            return best.seen[chosen]
        share = self._split.shared(dict(zip(self._names, chosen, strict=True)))
        found: Found | None = None
        try:
            splits = sum(number != WHOLE for choice in chosen for number in choice)
            found = Found(share, self._evaluate(share), splits)
        except InfeasibleError as error:
            best.refused = best.refused or error
        best.seen[chosen] = found
        if found is not None and (best.found is None or _is_better(found, best.found)):
            best.found = found
        return found

    def _improve(self, best: _Best, budget: int) -> None:
        """Change the choice of one kernel after the other as long as that helps."""
        if best.found is None:
            return
        looked = len(best.seen)
        improved = True
        while improved:
            improved = False
            for chosen in self._neighbours(best, best.found):
                if len(best.seen) - looked >= budget:
                    return
                before = best.found
                if self._look(chosen, best) is not None and best.found is not before:
                    improved = True
                    break

    def _neighbours(self, best: _Best, found: Found) -> Iterator[tuple[Choice, ...]]:
        """Return shardings that differ from the best in one kernel and may be better, those of the least sums first."""
        chosen = tuple(choice for _, choice in found.share.sharding)
        ranked = []
        total = self._costs.of_all(chosen)
        for number, name in enumerate(self._names):
            rest = total.minus(self._costs.around(number, chosen))
            for choice in self._split.choices[name]:
                if choice != chosen[number]:
                    changed = (*chosen[:number], choice, *chosen[number + 1 :])
                    sums = rest.plus(self._costs.around(number, changed))
                    if not _cannot_be_better(self._costs.least_ns(sums, len(changed)) / NS_PER_S, sums, best):
                        ranked.append((self._score(sums, len(changed), WEIGHTS[0]), changed))
        for _, changed in sorted(ranked, key=lambda one: one[0]):
            yield changed

    def _tree(self, best: _Best, evaluations: int) -> None:
        """Look at all shardings that may be faster, as far as the budgets go; what is left bounds the time."""
        nodes = NODES // max(1, len(self._names))
        looked = len(best.seen)
        heap: list[State] = [((), Sums())]
        while heap:
            chosen, sums = heap.pop()
            least_s = self._costs.least_ns(sums, len(chosen)) / NS_PER_S
            if _cannot_be_better(least_s, sums, best):
                continue
            if nodes <= 0 or len(best.seen) - looked >= evaluations:
                best.bound_s = min(best.bound_s, least_s)
                continue
            if len(chosen) == len(self._names):
                found = self._look(chosen, best)
                if found is not None:
                    best.bound_s = min(best.bound_s, found.mapping.bound_time_s)
                continue
            grown = self._grown((chosen, sums))
            nodes -= len(grown)
            grown.sort(key=lambda state: self._score(state[1], len(state[0]), WEIGHTS[0]), reverse=True)
            heap += grown


def _cannot_be_better(least_s: float, sums: Sums, best: _Best) -> bool:
    if best.found is None or least_s < best.time_s * (1 - TIE):
        return False
    return least_s > best.time_s * (1 + TIE) or (sums.message_bytes, sums.splits) >= best.found.rank[1:]


def _is_better(one: Found, other: Found) -> bool:
    least, most = sorted((one.mapping.figures.time_s, other.mapping.figures.time_s))
    if most - least > TIE * most:
        return one.mapping.figures.time_s < other.mapping.figures.time_s
    return one.rank[1:] < other.rank[1:]
