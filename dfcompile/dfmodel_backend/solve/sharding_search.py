"""The sharding with which a graph takes the least time on chips of a system, and a bound on all shardings.

What every mapping takes at least adds up over kernels and tensors: compute with no core idle, DRAM bytes that none
avoids, exchanges. A beam over kernels in topological order finds shardings that are good by that; the best are fused
and improved kernel by kernel. A search tree over all shardings with the same sums as bounds then proves the optimum, if
its nodes suffice. Where a sharding takes no longer than the bound on all of them, what is left is to find one that
takes as long, exchanges less and splits fewer loops. All budgets count work, never time.
"""

import math
from collections.abc import Callable, Iterator
from functools import cache, cached_property, reduce
from itertools import accumulate
from operator import add, sub
from typing import NamedTuple

from msgspec import Struct, field

from dfcompile.canonical_dag import Kernel
from dfcompile.dfmodel_backend.evaluate.graphs import Mapping
from dfcompile.dfmodel_backend.intra_chip.graph_model import GraphModel
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import NS_PER_S, MappingOptions
from dfcompile.dfmodel_backend.sharding.graphs import WHOLE, Choice, Sharding, SharedGraph, SplitGraph
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, Tensor, TensorKind
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace


class Sums(NamedTuple):
    """What every mapping of a sharding takes at least; sums over kernels and tensors."""

    compute_ns: float = 0.0
    memory_ns: float = 0.0
    network_ns: float = 0.0
    message_bytes: float = 0.0
    splits: int = 0
    slowest_ns: float = 0.0

    def plus(self, other: "Sums") -> "Sums":
        """Return both together."""
        return Sums._make((*map(add, self[:-1], other[:-1]), max(self.slowest_ns, other.slowest_ns)))

    def minus(self, other: "Sums") -> "Sums":
        """Return what is left without a part; the slowest stays."""
        return Sums._make((*map(sub, self[:-1], other[:-1]), self.slowest_ns))


class ShardingSums:
    """Compute with no core idle, DRAM bytes that no mapping avoids, and exchanges, of a graph on chips of a system."""

    def __init__(self, split: SplitGraph, system: System, options: MappingOptions) -> None:
        self._graph = split.graph
        self._system = system
        self._options = options
        self._split = split
        self._names = [kernel.name for kernel in split.graph.kernels]
        self.of_kernel = cache(self._of_kernel)
        self._additions: dict[tuple[object, ...], Sums] = {}
        self._shapes: dict[tuple[object, ...], tuple[float, float]] = {}
        self._whole: Choice = (WHOLE,) * len(split.chips)

    def _of_kernel(self, name: str, choice: Choice) -> Sums:
        """Return what a kernel takes."""
        compute_ns, slowest_ns = self._compute(self._split.kernel_share(name, choice))
        return Sums(compute_ns, slowest_ns=slowest_ns, splits=sum(number != WHOLE for number in choice))

    def _compute(self, kernel: Kernel) -> tuple[float, float]:
        """Return the compute time of a kernel with no core idle, and alone on the chip."""
        shape = (kernel.variant, kernel.outer, kernel.m, kernel.k, kernel.n)
        if shape not in self._shapes:
            model = GraphModel(DataflowGraph("kernel", (kernel,), ()), self._system.machine, self._options)
            compute_ns = float(model.least_parts[0, 0])
            alone_ns = compute_ns if self._options.compute_utilization > 0 else model.least_ns()
            self._shapes[shape] = compute_ns, alone_ns
        return self._shapes[shape]

    def _of_tensor(self, tensor: Tensor, source: Choice, readers: tuple[Choice, ...]) -> Sums:
        share = self._split.tensor_share(tensor, source, readers)
        is_unavoidable = tensor.kind is TensorKind.OUTPUT or (not tensor.source and readers)
        memory_ns = share.size_bytes / self._system.dram_gb_per_s if is_unavoidable else 0.0
        return Sums(memory_ns=memory_ns, network_ns=share.time_ns, message_bytes=share.message_bytes)

    @cached_property
    def _touched(self) -> list[list[Tensor]]:
        """Per kernel the tensors that it reads or makes; of their uses those of earlier kernels come first."""
        touched: list[list[Tensor]] = [[] for _ in self._names]
        for tensor in self._graph.tensors:
            uses = sorted(tensor.uses, key=lambda use: self._graph.index[use.kernel])
            for place in dict.fromkeys(self._ends(tensor)):
                touched[place].append(replace(tensor, uses=tuple(uses)))
        return touched

    def _ends(self, tensor: Tensor) -> list[int]:
        return [self._graph.index[name] for name in (tensor.source, *(use.kernel for use in tensor.uses)) if name]

    @cached_property
    def _rest(self) -> list[Sums]:
        """What the kernels from each one on take at least, whatever is chosen."""
        least = [self._least(number) for number in reversed(range(len(self._names)))]
        return list(accumulate(least, Sums.plus, initial=Sums()))[::-1]

    def _least(self, number: int) -> Sums:
        """Return what a kernel takes at least, and what it writes or, as the first one, reads."""
        name = self._names[number]
        choices = self._split.choices[name]
        sums = [self.of_kernel(name, choice) for choice in choices]
        memory_ns = 0.0
        for tensor in self._touched[number]:
            if tensor.source == name:
                memory_ns += min(self._of_tensor(tensor, choice, ()).memory_ns for choice in choices)
            elif not tensor.source and tensor.uses[0].kernel == name:
                memory_ns += min(self._of_tensor(tensor, self._whole, (choice,)).memory_ns for choice in choices)
        return Sums(min(one.compute_ns for one in sums), memory_ns, slowest_ns=min(one.slowest_ns for one in sums))

    @cached_property
    def _neighbourhoods(self) -> list[list[int]]:
        """Per kernel the earlier ones on whose choice depends what it adds."""
        return [
            sorted({end for tensor in touched for end in self._ends(tensor) if end < number})
            for number, touched in enumerate(self._touched)
        ]

    def added(self, chosen: tuple[Choice, ...], choice: Choice) -> Sums:
        """Return what the next kernel adds to those that are settled."""
        number = len(chosen)
        key = (number, choice, *(chosen[place] for place in self._neighbourhoods[number]))
        if key in self._additions:
            return self._additions[key]
        added = self.of_kernel(self._names[number], choice)
        place = self._graph.index
        for tensor in self._touched[number]:
            if tensor.source == self._names[number]:
                added = added.plus(self._of_tensor(tensor, choice, ()))
                continue
            source = chosen[place[tensor.source]] if tensor.source else self._whole
            earlier = tuple(chosen[place[one.kernel]] for one in tensor.uses if place[one.kernel] < number)
            after = self._of_tensor(tensor, source, (*earlier, choice))
            before = self._of_tensor(tensor, source, earlier)
            added = added.plus(after.minus(before))
        self._additions[key] = added
        return added

    def least_ns(self, sums: Sums, settled: int) -> float:
        """Return a time that no mapping beats, of the sums of so many first kernels."""
        total = sums.plus(self._rest[settled])
        return self._options.overlap.time_ns(
            max(total.compute_ns, total.slowest_ns), total.memory_ns, max(total.network_ns, 0.0)
        )

    @property
    def bound_s(self) -> float:
        """A time that no mapping of any sharding beats."""
        return self.least_ns(Sums(), 0) / NS_PER_S

    @cached_property
    def open_places(self) -> list[list[int]]:
        """Per kernel those of the settled ones on whose choice later costs depend."""
        last: dict[int, int] = {}
        for tensor in self._graph.tensors:
            ends = self._ends(tensor)
            for end in ends:
                last[end] = max(last.get(end, end), *ends)
        return [[end for end in range(number + 1) if last.get(end, end) > number] for number in range(len(self._names))]

    def of_all(self, chosen: tuple[Choice, ...]) -> Sums:
        """Return what all kernels take."""
        return reduce(Sums.plus, (self.added(chosen[:number], choice) for number, choice in enumerate(chosen)), Sums())

    def around(self, number: int, chosen: tuple[Choice, ...]) -> Sums:
        """Return what a kernel and the tensors that it makes and reads take."""
        place = self._graph.index
        sums = self.of_kernel(self._names[number], chosen[number])
        for tensor in self._touched[number]:
            source = chosen[place[tensor.source]] if tensor.source else self._whole
            sums = sums.plus(self._of_tensor(tensor, source, tuple(chosen[place[use.kernel]] for use in tensor.uses)))
        return sums


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
        # What overlaps takes the longest of three times: whether a kernel should read more or exchange more depends on
        # which of them that will be, and is settled for all kernels alike by weights.
        found = {state[0]: state for weights in WEIGHTS for state in self._beam(weights)}
        beam = sorted(found.values(), key=lambda state: self._score(state[1], len(self._names), WEIGHTS[0]))
        for chosen, sums in beam[: max(2, budget // 8)]:
            if not _cannot_be_better(self._costs.least_ns(sums, len(chosen)) / NS_PER_S, sums, best):
                self._look(chosen, best)
        if best.time_s <= self.bound_s * (1 + TIE):
            self._look(self._beam(SIMPLEST)[0][0], best)
        else:
            self._improve(best, budget // 2)
            self._tree(best, budget // 2)
        return best.found, min(best.bound_s, best.time_s), best.refused

    def _beam(self, weights: tuple[float, float, float]) -> list[State]:
        """Return shardings that are good under weights of compute, memory and network."""
        states: list[State] = [((), Sums())]
        for number, name in enumerate(self._names):
            grown = [longer for state in states for longer in self._grown(state)]
            kept: dict[tuple[Choice, ...], State] = {}
            for chosen, sums in sorted(grown, key=lambda state: self._score(state[1], number + 1, weights)):
                kept.setdefault(tuple(chosen[place] for place in self._costs.open_places[number]), (chosen, sums))
            states = list(kept.values())[: max(4, min(WIDEST, BEAM // len(self._split.choices[name])))]
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
        yield from (changed for _, changed in sorted(ranked, key=lambda one: one[0]))

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
