"""The sharding with which a graph takes the least time on chips of a system, and a bound on all shardings.

What every mapping takes at least adds up over kernels and tensors: compute with no core idle, DRAM bytes that none
avoids, exchanges. A beam over kernels in topological order finds shardings that are good by that; the best are fused
and improved kernel by kernel. A search tree over all shardings with the same sums as bounds then proves the optimum, if
its nodes suffice. All budgets count work, never time.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from dfcompile.dfmodel_backend.evaluate.mapping import Mapping
from dfcompile.dfmodel_backend.fusion.graphs.bounds import lower_bound_ns
from dfcompile.dfmodel_backend.fusion.graphs.sets import GraphSets
from dfcompile.dfmodel_backend.intra_chip.configuration import ConfigurationModel
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.sharding.graphs import Sharding, SharedGraph, SplitGraph
from dfcompile.dfmodel_backend.sharding.kernel_splits import WHOLE, Choice
from dfcompile.dfmodel_backend.workload.chip_workload import one_chip_workload
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, DataflowKernel, Tensor, TensorKind
from dfcompile.errors import InfeasibleError

NS_PER_S = 1e9
BEAM = 200  # partial shardings times choices of a kernel that are looked at, per kernel
WIDEST = 24  # partial shardings that are kept
# Of compute, memory and network; the first are told apart by the least time before.
WEIGHTS = ((1.0, 1.0, 1.0), (1.0, 1.0, 4.0), (1.0, 4.0, 1.0))
NODES = 100_000  # of the search tree, times the number of kernels
EVALUATIONS = 20_000  # shardings that are fused, times the square of the number of kernels
TIE = 1e-12

Evaluate = Callable[[SharedGraph], Mapping]


@dataclass(frozen=True, slots=True)
class Sums:
    """What every mapping of a sharding takes at least; sums over kernels and tensors."""

    compute_ns: float = 0.0
    slowest_ns: float = 0.0
    memory_ns: float = 0.0
    network_ns: float = 0.0
    message_bytes: float = 0.0
    splits: int = 0

    def plus(self, other: "Sums") -> "Sums":
        """Return both together."""
        return Sums(
            self.compute_ns + other.compute_ns,
            max(self.slowest_ns, other.slowest_ns),
            self.memory_ns + other.memory_ns,
            self.network_ns + other.network_ns,
            self.message_bytes + other.message_bytes,
            self.splits + other.splits,
        )

    def minus(self, other: "Sums") -> "Sums":
        """Return what is left without a part; the slowest stays."""
        return Sums(
            self.compute_ns - other.compute_ns,
            self.slowest_ns,
            self.memory_ns - other.memory_ns,
            self.network_ns - other.network_ns,
            self.message_bytes - other.message_bytes,
            self.splits - other.splits,
        )


@dataclass(frozen=True, slots=True)
class Found:
    """A sharding and its mapping."""

    share: SharedGraph
    mapping: Mapping
    splits: int

    @property
    def rank(self) -> tuple[float, float, int]:
        """Time, bytes of messages, loops that are split."""
        return (self.mapping.time_s, self.share.network_bytes, self.splits)


@dataclass(slots=True, eq=False)
class _Best:
    """The best sharding so far, and the least time that one might have which was not looked at."""

    found: Found | None = None
    bound_s: float = math.inf
    refused: InfeasibleError | None = None
    seen: dict[tuple[Choice, ...], Found | None] = field(default_factory=dict)

    @property
    def time_s(self) -> float:
        return math.inf if self.found is None else self.found.mapping.time_s


class ShardingSearch:
    """Finds the sharding of a graph on all chips of a system."""

    def __init__(self, graph: DataflowGraph, system: System, options: MappingOptions, evaluate: Evaluate) -> None:
        self._graph = graph
        self._system = system
        self._options = options
        self._evaluate = evaluate
        self._split = SplitGraph(graph, system)
        self._names = [kernel.name for kernel in graph.kernels]
        self._kernels: dict[tuple[str, Choice], Sums] = {}
        self._additions: dict[tuple[object, ...], Sums] = {}
        self._shapes: dict[tuple[object, ...], tuple[float, float]] = {}
        self._whole: Choice = (WHOLE,) * len(self._split.chips)

    # -- sums

    def _of_kernel(self, name: str, choice: Choice) -> Sums:
        key = (name, choice)
        if key not in self._kernels:
            compute_ns, slowest_ns = self._compute(self._split.kernel_share(name, choice))
            split = sum(number != WHOLE for number in choice)
            self._kernels[key] = Sums(compute_ns, slowest_ns, splits=split)
        return self._kernels[key]

    def _compute(self, kernel: DataflowKernel) -> tuple[float, float]:
        """Return the compute time of a kernel with no core idle, and alone on the chip."""
        shape = (kernel.type, kernel.variant, kernel.outer, kernel.m, kernel.k, kernel.n)
        if shape not in self._shapes:
            alone = DataflowGraph("kernel", (kernel,), ())
            model = ConfigurationModel(one_chip_workload(alone), self._system, self._options)
            compute_ns = float(GraphSets(model).least_parts[0, 0])
            self._shapes[shape] = (
                compute_ns,
                compute_ns if self._options.compute_utilization > 0 else lower_bound_ns(model),
            )
        return self._shapes[shape]

    def _of_tensor(self, tensor: Tensor, source: Choice, readers: tuple[Choice, ...]) -> Sums:
        share = self._split.tensor_share(tensor, source, readers)
        is_unavoidable = tensor.kind is TensorKind.OUTPUT or (not tensor.source and readers)
        memory_ns = share.size_bytes / self._system.dram_gb_per_s if is_unavoidable else 0.0
        return Sums(memory_ns=memory_ns, network_ns=share.time_ns, message_bytes=share.message_bytes)

    @cached_property
    def _touches(self) -> list[list[tuple[Tensor, int]]]:
        """Per kernel the tensors that it reads, with its place among their uses, then those that it makes (-1)."""
        place = {name: number for number, name in enumerate(self._names)}
        touched: list[list[tuple[Tensor, int]]] = [[] for _ in self._names]
        for tensor in self._graph.tensors:
            for number, use in enumerate(tensor.uses):
                touched[place[use.kernel]].append((tensor, number))
            if tensor.source:
                touched[place[tensor.source]].append((tensor, -1))
        return touched

    @cached_property
    def _ordered_tensors(self) -> dict[str, Tensor]:
        """Tensors with their uses in the order of the kernels, so that readers that are settled come first."""
        place = {name: number for number, name in enumerate(self._names)}
        return {
            tensor.name: replace(tensor, uses=tuple(sorted(tensor.uses, key=lambda use: place[use.kernel])))
            for tensor in self._graph.tensors
        }

    @cached_property
    def _rest(self) -> list[Sums]:
        """What the kernels from each one on take at least, whatever is chosen."""
        rest = [Sums()]
        born: dict[str, float] = {}
        for tensor in self._ordered_tensors.values():
            if tensor.kind is TensorKind.OUTPUT or not tensor.source:
                born[tensor.name] = self._least_memory_ns(tensor)
        for number in range(len(self._names) - 1, -1, -1):
            name = self._names[number]
            sums = [self._of_kernel(name, choice) for choice in self._split.choices[name]]
            memory_ns = 0.0
            for tensor, use in self._touches[number]:
                is_first = use == -1 or (
                    not tensor.source and self._ordered_tensors[tensor.name].uses[0].kernel == name
                )
                if is_first:
                    memory_ns += born.get(tensor.name, 0.0)
            least = Sums(min(one.compute_ns for one in sums), min(one.slowest_ns for one in sums), memory_ns)
            rest.append(rest[-1].plus(least))
        rest.reverse()
        return rest

    def _least_memory_ns(self, tensor: Tensor) -> float:
        end = tensor.source or (tensor.uses[0].kernel if tensor.uses else "")
        if not end:
            return 0.0
        choices = self._split.choices[end]
        if tensor.source:
            return min(self._of_tensor(tensor, choice, ()).memory_ns for choice in choices)
        ordered = self._ordered_tensors[tensor.name]
        choices = self._split.choices[ordered.uses[0].kernel]
        return min(self._of_tensor(ordered, self._whole, (choice,)).memory_ns for choice in choices)

    @cached_property
    def _neighbourhoods(self) -> list[list[int]]:
        """Per kernel the earlier ones on whose choice depends what it adds."""
        place = self._places
        found = []
        for number, touched in enumerate(self._touches):
            ends = {place[use.kernel] for tensor, at in touched if at >= 0 for use in tensor.uses}
            ends |= {place[tensor.source] for tensor, at in touched if at >= 0 and tensor.source}
            found.append(sorted(end for end in ends if end < number))
        return found

    def _added(self, chosen: tuple[Choice, ...], choice: Choice) -> Sums:
        """Return what the next kernel adds to those that are settled."""
        number = len(chosen)
        key = (number, choice, *(chosen[place] for place in self._neighbourhoods[number]))
        if key not in self._additions:
            self._additions[key] = self._addition(number, chosen, choice)
        return self._additions[key]

    def _addition(self, number: int, chosen: tuple[Choice, ...], choice: Choice) -> Sums:
        added = self._of_kernel(self._names[number], choice)
        place = self._places
        for touched, use in self._touches[number]:
            tensor = self._ordered_tensors[touched.name]
            if use == -1:
                added = added.plus(self._of_tensor(tensor, choice, ()))
                continue
            source = chosen[place[tensor.source]] if tensor.source else self._whole
            earlier = tuple(chosen[place[one.kernel]] for one in tensor.uses if place[one.kernel] < number)
            after = self._of_tensor(tensor, source, (*earlier, choice))
            before = self._of_tensor(tensor, source, earlier)
            added = added.plus(after.minus(before))
        return added

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self._names)}

    def _least_ns(self, sums: Sums, settled: int) -> float:
        total = sums.plus(self._rest[settled])
        return self._options.overlap.time_ns(
            max(total.compute_ns, total.slowest_ns), total.memory_ns, max(total.network_ns, 0.0)
        )

    @property
    def bound_s(self) -> float:
        """A time that no mapping of any sharding beats."""
        return self._least_ns(Sums(), 0) / NS_PER_S

    def least_s(self, sharding: Sharding) -> float:
        """Return a time that no mapping of one sharding beats."""
        chosen = tuple(sharding[name] for name in self._names)
        return self._least_ns(self._sums(chosen), len(chosen)) / NS_PER_S

    # -- search

    def best(self, below_s: float = math.inf) -> tuple[Found | None, float, InfeasibleError | None]:
        """Return the best sharding, a time that no sharding beats, and why there is none, if there is none.

        Args:
            below_s: a time that is known: what cannot be below is not looked at.
        """
        best = _Best()
        if self.bound_s >= below_s:
            return None, self.bound_s, None
        budget = max(4, EVALUATIONS // max(1, len(self._names)) ** 2)
        beam = self._beams()
        for chosen, _ in beam[: max(2, budget // 8)]:
            if self.least_s(dict(zip(self._names, chosen, strict=True))) <= best.time_s * (1 + TIE):
                self._look(chosen, best)
        self._improve(best, budget // 2)
        self._tree(best, budget)
        bound_s = min(best.bound_s, best.time_s)
        return best.found, bound_s, best.refused

    def _beams(self) -> list[tuple[tuple[Choice, ...], Sums]]:
        """Return shardings that take the least by their sums, the best first: each found under one of several weights.

        What overlaps takes the longest of three times; whether a kernel should read more or exchange more depends on
        which of them that will be, and is settled for all kernels alike by weights.
        """
        found = {state[0]: state for weights in WEIGHTS for state in self._beam(weights)}
        return sorted(found.values(), key=lambda state: self._score(state[1], len(self._names), WEIGHTS[0]))

    def _beam(self, weights: tuple[float, float, float]) -> list[tuple[tuple[Choice, ...], Sums]]:
        """Return shardings that are good under weights of compute, memory and network."""
        states: list[tuple[tuple[Choice, ...], Sums]] = [((), Sums())]
        for number, name in enumerate(self._names):
            grown = [
                ((*chosen, choice), sums.plus(self._added(chosen, choice)))
                for chosen, sums in states
                for choice in self._split.choices[name]
            ]
            kept: dict[tuple[Choice, ...], tuple[tuple[Choice, ...], Sums]] = {}
            for chosen, sums in sorted(grown, key=lambda state: self._score(state[1], number + 1, weights)):
                kept.setdefault(tuple(chosen[place] for place in self._open[number]), (chosen, sums))
            width = max(4, min(WIDEST, BEAM // len(self._split.choices[name])))
            states = list(kept.values())[:width]
        return states

    def _score(
        self, sums: Sums, settled: int, weights: tuple[float, float, float]
    ) -> tuple[float, float, float, int]:
        least_ns = self._least_ns(sums, settled) if weights is WEIGHTS[0] else 0.0
        parts = zip(weights, (sums.compute_ns, sums.memory_ns, sums.network_ns), strict=True)
        return (least_ns, sum(weight * part for weight, part in parts), sums.message_bytes, sums.splits)

    @cached_property
    def _open(self) -> list[list[int]]:
        """Per kernel those of the settled ones on whose choice later costs depend."""
        place = self._places
        last: dict[int, int] = {}
        for tensor in self._graph.tensors:
            ends = [place[use.kernel] for use in tensor.uses] + ([place[tensor.source]] if tensor.source else [])
            for end in ends:
                last[end] = max(last.get(end, end), *ends)
        return [[end for end in range(number + 1) if last.get(end, end) > number] for number in range(len(self._names))]

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
            for chosen in self._neighbours(best.found):
                if len(best.seen) - looked >= budget:
                    return
                before = best.found
                if self._look(chosen, best) is not None and best.found is not before:
                    improved = True
                    break

    def _neighbours(self, found: Found) -> Iterator[tuple[Choice, ...]]:
        """Return shardings that differ in one kernel and may be better, those of the least sums first."""
        chosen = tuple(choice for _, choice in found.share.sharding)
        ranked = []
        total = self._sums(chosen)
        for number, name in enumerate(self._names):
            rest = total.minus(self._around(number, chosen))
            for choice in self._split.choices[name]:
                if choice != chosen[number]:
                    changed = (*chosen[:number], choice, *chosen[number + 1 :])
                    sums = rest.plus(self._around(number, changed))
                    if self._least_ns(sums, len(changed)) <= found.mapping.time_s * NS_PER_S * (1 + TIE):
                        ranked.append((self._score(sums, len(changed), WEIGHTS[0]), changed))
        for _, changed in sorted(ranked, key=lambda one: one[0]):
            yield changed

    def _sums(self, chosen: tuple[Choice, ...]) -> Sums:
        sums = Sums()
        for number, choice in enumerate(chosen):
            sums = sums.plus(self._added(chosen[:number], choice))
        return sums

    def _around(self, number: int, chosen: tuple[Choice, ...]) -> Sums:
        """Return what a kernel and the tensors that it makes and reads take."""
        place = self._places
        sums = self._of_kernel(self._names[number], chosen[number])
        for name in dict.fromkeys(tensor.name for tensor, _ in self._touches[number]):
            tensor = self._ordered_tensors[name]
            source = chosen[place[tensor.source]] if tensor.source else self._whole
            sums = sums.plus(self._of_tensor(tensor, source, tuple(chosen[place[use.kernel]] for use in tensor.uses)))
        return sums

    def _tree(self, best: _Best, evaluations: int) -> None:
        """Look at all shardings that may be faster, as far as the budgets go; what is left bounds the time."""
        nodes = NODES // len(self._names)
        looked = len(best.seen)
        heap: list[tuple[tuple[Choice, ...], Sums]] = [((), Sums())]
        while heap:
            chosen, sums = heap.pop()
            least_s = self._least_ns(sums, len(chosen)) / NS_PER_S
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
            name = self._names[len(chosen)]
            grown = [
                ((*chosen, choice), sums.plus(self._added(chosen, choice))) for choice in self._split.choices[name]
            ]
            nodes -= len(grown)
            grown.sort(key=lambda state: self._score(state[1], len(state[0]), WEIGHTS[0]), reverse=True)
            heap += grown


def _cannot_be_better(least_s: float, sums: Sums, best: _Best) -> bool:
    if best.found is None or least_s < best.time_s * (1 - TIE):
        return False
    return least_s > best.time_s * (1 + TIE) or (sums.message_bytes, sums.splits) >= best.found.rank[1:]


def _is_better(one: Found, other: Found) -> bool:
    least, most = sorted((one.mapping.time_s, other.mapping.time_s))
    if most - least > TIE * most:
        return one.mapping.time_s < other.mapping.time_s
    return one.rank[1:] < other.rank[1:]
