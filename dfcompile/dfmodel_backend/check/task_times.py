"""When the tasks of a mapping of a lowering run, and what configurations take, task by task."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import NO_KERNEL, CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.check.held_bytes import Touch, touches_of
from dfcompile.dfmodel_backend.check.machines import dram_bytes_per_ns
from dfcompile.dfmodel_backend.check.requirements import joined
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
