"""What every mapping of a sharding takes at least, as sums over kernels and tensors."""

from functools import cache, cached_property, reduce
from itertools import accumulate
from operator import add, sub
from typing import NamedTuple

from dfcompile.canonical_dag import Kernel
from dfcompile.dfmodel_backend.intra_chip.graph_model import GraphModel
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.sharding.graphs import WHOLE, Choice, SplitGraph
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, Tensor, TensorKind
from dfcompile.records import replace

NS_PER_S = 1e9


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
            alone = DataflowGraph("kernel", (kernel,), ())
            model = GraphModel(alone, self._system.machine, self._options)
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
        if key not in self._additions:
            self._additions[key] = self._addition(number, chosen, choice)
        return self._additions[key]

    def _addition(self, number: int, chosen: tuple[Choice, ...], choice: Choice) -> Sums:
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
