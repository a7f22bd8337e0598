"""What every mapping of a sharding takes at least, as sums over kernels and tensors."""

from functools import cached_property

from msgspec import Struct

from dfcompile.canonical_dag import Kernel
from dfcompile.dfmodel_backend.intra_chip.graph_model import GraphModel
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.sharding.graphs import WHOLE, Choice, Sharding, SplitGraph
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, Tensor, TensorKind
from dfcompile.records import replace

NS_PER_S = 1e9


class Sums(Struct, frozen=True):
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


class ShardingSums:
    """Compute with no core idle, DRAM bytes that no mapping avoids, and exchanges, of a graph on chips of a system."""

    def __init__(self, split: SplitGraph, system: System, options: MappingOptions) -> None:
        self._graph = split.graph
        self._system = system
        self._options = options
        self._split = split
        self._names = [kernel.name for kernel in split.graph.kernels]
        self._kernels: dict[tuple[str, Choice], Sums] = {}
        self._additions: dict[tuple[object, ...], Sums] = {}
        self._shapes: dict[tuple[object, ...], tuple[float, float]] = {}
        self._whole: Choice = (WHOLE,) * len(split.chips)

    def of_kernel(self, name: str, choice: Choice) -> Sums:
        """Return what a kernel takes."""
        key = (name, choice)
        if key not in self._kernels:
            compute_ns, slowest_ns = self._compute(self._split.kernel_share(name, choice))
            split = sum(number != WHOLE for number in choice)
            self._kernels[key] = Sums(compute_ns, slowest_ns, splits=split)
        return self._kernels[key]

    def _compute(self, kernel: Kernel) -> tuple[float, float]:
        """Return the compute time of a kernel with no core idle, and alone on the chip."""
        shape = (kernel.variant, kernel.outer, kernel.m, kernel.k, kernel.n)
        if shape not in self._shapes:
            alone = DataflowGraph("kernel", (kernel,), ())
            model = GraphModel(alone, self._system.machine, self._options)
            compute_ns = float(model.least_parts[0, 0])
            self._shapes[shape] = (
                compute_ns,
                compute_ns if self._options.compute_utilization > 0 else model.least_ns(),
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
            sums = [self.of_kernel(name, choice) for choice in self._split.choices[name]]
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

    def added(self, chosen: tuple[Choice, ...], choice: Choice) -> Sums:
        """Return what the next kernel adds to those that are settled."""
        number = len(chosen)
        key = (number, choice, *(chosen[place] for place in self._neighbourhoods[number]))
        if key not in self._additions:
            self._additions[key] = self._addition(number, chosen, choice)
        return self._additions[key]

    def _addition(self, number: int, chosen: tuple[Choice, ...], choice: Choice) -> Sums:
        added = self.of_kernel(self._names[number], choice)
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

    def least_s(self, sharding: Sharding) -> float:
        """Return a time that no mapping of one sharding beats."""
        chosen = tuple(sharding[name] for name in self._names)
        return self.least_ns(self.of_all(chosen), len(chosen)) / NS_PER_S

    @cached_property
    def open_places(self) -> list[list[int]]:
        """Per kernel those of the settled ones on whose choice later costs depend."""
        place = self._places
        last: dict[int, int] = {}
        for tensor in self._graph.tensors:
            ends = [place[use.kernel] for use in tensor.uses] + ([place[tensor.source]] if tensor.source else [])
            for end in ends:
                last[end] = max(last.get(end, end), *ends)
        return [[end for end in range(number + 1) if last.get(end, end) > number] for number in range(len(self._names))]

    def of_all(self, chosen: tuple[Choice, ...]) -> Sums:
        """Return what all kernels take."""
        sums = Sums()
        for number, choice in enumerate(chosen):
            sums = sums.plus(self.added(chosen[:number], choice))
        return sums

    def around(self, number: int, chosen: tuple[Choice, ...]) -> Sums:
        """Return what a kernel and the tensors that it makes and reads take."""
        place = self._places
        sums = self.of_kernel(self._names[number], chosen[number])
        for name in dict.fromkeys(tensor.name for tensor, _ in self._touches[number]):
            tensor = self._ordered_tensors[name]
            source = chosen[place[tensor.source]] if tensor.source else self._whole
            sums = sums.plus(self._of_tensor(tensor, source, tuple(chosen[place[use.kernel]] for use in tensor.uses)))
        return sums
