"""When the tasks of a mapping of a lowering run, and what configurations and kernels take, task by task."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import NO_KERNEL, CanonicalDag, Kernel
from dfcompile.canonical_dag.dag import Int64
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.check.machines import dram_bytes_per_ns
from dfcompile.dfmodel_backend.check.requirements import joined
from dfcompile.dfmodel_backend.check.task_memory import Touch, touches_of
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.dfmodel_backend.workload.exchange import Exchange
from dfcompile.distinct import distinct
from dfcompile.errors import VerificationError

NOBODY = -1  # in the place of a kernel or a configuration, of memory


class TaskPlaces(Struct, frozen=True, dict=True):
    """Which kernel and which configuration each task belongs to.

    Attributes:
        dag: the lowering, volumes in elements.
        attained: the mapping.
    """

    dag: CanonicalDag
    attained: TaskMapping

    @cached_property
    def _name_of_scope(self) -> list[str]:
        kernels = self.dag.kernels
        return [scope.name if scope.kernel == NO_KERNEL else kernels[scope.kernel].name for scope in self.dag.scopes]

    @cached_property
    def names(self) -> list[str]:
        """Kernels with tasks; of tasks without a kernel their scope."""
        with_tasks = distinct(self.dag.node_scope[self.dag.is_computational]).tolist()
        return list(dict.fromkeys(self._name_of_scope[scope] for scope in with_tasks))

    @cached_property
    def kernel(self) -> Int64:
        """Number of each node's kernel, `NOBODY` of memory, shape [nodes]."""
        numbers = {name: number for number, name in enumerate(self.names)}
        of_scope = np.array([numbers.get(name, NOBODY) for name in self._name_of_scope], dtype=np.int64)
        return np.where(self.dag.is_computational, of_scope[self.dag.node_scope], NOBODY)

    @cached_property
    def configuration(self) -> Int64:
        """Number of each task's configuration, `NOBODY` of memory, shape [nodes].

        Raises:
            VerificationError: a task is in none, or in two.
        """
        dag, number = self.dag, np.full(self.dag.nodes_count, NOBODY, dtype=np.int64)
        for place, found in enumerate(self.attained.configurations):
            nodes = found.part.node[found.part.dag.is_computational]
            if (number[nodes] != NOBODY).any():
                raise VerificationError(f"configuration {place}: found a task for the second time")
            number[nodes] = place
        lost = dag.is_computational & (number == NOBODY)
        if lost.any():
            raise VerificationError(f"node {dag.node_name(int(np.argmax(lost)))!r}: in no configuration")
        return number

    @cached_property
    def place(self) -> dict[str, int]:
        """Number of the configuration of each kernel's tasks.

        Raises:
            VerificationError: they are in several.
        """
        tasks = np.flatnonzero(self.kernel != NOBODY)
        places = np.zeros(len(self.names), dtype=np.int64)
        places[self.kernel[tasks]] = self.configuration[tasks]
        apart = tasks[self.configuration[tasks] != places[self.kernel[tasks]]]
        for task in apart[:1].tolist():
            name, both = self.names[self.kernel[task]], (self.configuration[task], places[self.kernel[task]])
            raise VerificationError(f"kernel {name!r}: found in configurations {both[0]} and {both[1]}")
        return dict(zip(self.names, places.tolist(), strict=True))

    @cached_property
    def touches(self) -> list[Touch]:
        """What configurations do with memory."""
        return touches_of(self.dag, self.configuration, self.attained.schedule.streamed)


class TaskTimes(TaskPlaces, frozen=True):
    """What each configuration of a mapping takes.

    Attributes:
        system: with the chips in use.
        overlap: of compute, memory and network.
        exchanges: of all chips.
    """

    system: System
    overlap: Overlap
    exchanges: Sequence[Exchange]

    @property
    def period_ns(self) -> float:
        """Of a cycle."""
        return 1 / self.system.accelerator.frequency_ghz

    @cached_property
    def dram_bytes(self) -> list[int]:
        """Of each configuration, on one chip."""
        stores = (one.stores for one in self.attained.configurations)
        return [sum(store.dram_read_bytes + store.dram_write_bytes for store in own) for own in stores]

    @cached_property
    def parts_ns(self) -> list[tuple[float, float, float]]:
        """Compute, memory and network of each configuration."""
        network_ns = [0.0] * len(self.attained.configurations)
        for exchange in self.exchanges:
            network_ns[self.place[exchange.source]] += exchange.time_ns
        bandwidth = dram_bytes_per_ns(self.system)
        return [
            (one.schedule.makespan_cycles * self.period_ns, size / bandwidth, exchanged_ns)
            for one, size, exchanged_ns in zip(self.attained.configurations, self.dram_bytes, network_ns, strict=True)
        ]

    @cached_property
    def times_ns(self) -> list[float]:
        """Of each configuration."""
        return [joined(self.overlap, *parts) for parts in self.parts_ns]

    @property
    def time_ns(self) -> float:
        """Of all configurations."""
        return sum(self.times_ns)


class KernelRecount(Struct, frozen=True):
    """What a kernel of a mapping does.

    Attributes:
        op: type of its canonical operator; empty of tasks without a kernel.
        flop: its operations.
        chip_bytes: on the edges at its tasks, those between two of them twice.
        dram_bytes: its part of each store in proportion to what it reads, and writes.
        rounded: how often that was rounded to whole bytes: of stores that it shares with others.
        compute_ns: from the first start to the last end of its tasks.
        network_ns: of the exchanges of its results.
        received_bytes: that the exchanges of its results bring to all chips.
    """

    op: str
    flop: int
    chip_bytes: int
    dram_bytes: Fraction
    rounded: int
    compute_ns: float
    network_ns: float
    received_bytes: int

    def require_dram(self, where: str, found: int) -> None:
        """Require that bytes of DRAM are those of the kernel, but for rounding.

        Raises:
            VerificationError: they are not.
        """
        if abs(found - self.dram_bytes) > self.rounded:
            raise VerificationError(f"{where}: found {found} against {float(self.dram_bytes):g} recomputed")


def kernels_of(times: TaskTimes) -> Iterator[tuple[str, KernelRecount]]:
    """Yield each kernel with tasks by its name."""
    schedule, names, kernel = times.attained.schedule, times.names, times.kernel
    tasks = np.flatnonzero(kernel != NOBODY)
    start, end, chip_bytes = np.full((3, len(names)), [[schedule.makespan_cycles], [0], [0]], dtype=np.int64)
    np.minimum.at(start, kernel[tasks], schedule.start[tasks])
    np.maximum.at(end, kernel[tasks], schedule.last_out[tasks])
    np.add.at(chip_bytes, kernel[tasks], _moved(times.dag)[tasks])
    exact, rounded = _dram_shares(times)
    known = {one.name: one for one in times.dag.kernels}
    for number, name in enumerate(names):
        exchanges = [one for one in times.exchanges if one.source == name]
        yield (
            name,
            KernelRecount(
                op=known[name].op if name in known else "",
                flop=flop_of(known[name]) if name in known else 0,
                chip_bytes=int(chip_bytes[number]),
                dram_bytes=exact.get(number, Fraction(0)),
                rounded=rounded[number],
                compute_ns=int(end[number] - start[number]) * times.period_ns,
                network_ns=sum((one.time_ns for one in exchanges), 0.0),
                received_bytes=sum(one.moved_bytes for one in exchanges),
            ),
        )


def flop_of(kernel: Kernel) -> int:
    """Return the operations of a kernel: two per term of each sum of a contraction, else one per element."""
    elements = math.prod((kernel.outer, kernel.m, kernel.n))
    return 2 * kernel.k * elements if kernel.variant.is_gemm else elements


def _moved(dag: CanonicalDag) -> Int64:
    """Return the bytes on the edges of each node, from and to tasks and buffers, shape [nodes]."""
    real = dag.is_computational | dag.is_buffer
    size = np.where(real[dag.edge_source] & real[dag.edge_target], dag.edge_volume * dag.edge_element_bytes, 0)
    moved = np.zeros(dag.nodes_count, dtype=np.int64)
    np.add.at(moved, dag.edge_source, size)
    np.add.at(moved, dag.edge_target, size)
    return moved


def _dram_shares(times: TaskTimes) -> tuple[dict[int, Fraction], Counter[int]]:
    """Return the bytes of DRAM of each kernel, and how often they were rounded."""
    stores = [{store.name: store for store in one.stores} for one in times.attained.configurations]
    exact: dict[int, Fraction] = {}
    rounded = Counter[int]()
    for (place, name, is_read), parts in _through_memory(times).items():
        use = stores[place][name]
        total = use.dram_read_bytes if is_read else use.dram_write_bytes
        everything = sum(parts.values())
        for kernel, part in parts.items():
            exact[kernel] = exact.get(kernel, Fraction(0)) + Fraction(total * part, everything)
            rounded[kernel] += len(parts) > 1
    return exact, rounded


def _through_memory(times: TaskTimes) -> dict[tuple[int, str, bool], Counter[int]]:
    """Return the bytes of each kernel by configuration, store, and whether it reads or writes them."""
    dag, sizes = times.dag, times.dag.edge_volume * times.dag.edge_element_bytes
    found: dict[tuple[int, str, bool], Counter[int]] = {}
    for touch in times.touches:
        for is_read, edges, ends in ((True, touch.reads, dag.edge_target), (False, touch.writes, dag.edge_source)):
            if len(edges):
                sums = found.setdefault((touch.configuration, touch.name, is_read), Counter())
                for kernel, size in zip(times.kernel[ends[edges]].tolist(), sizes[edges].tolist(), strict=True):
                    sums[kernel] += size
    return found
