"""When the tasks of a mapping of a lowering run, and what configurations take, task by task."""

from collections.abc import Sequence

import numpy as np

from dfcompile.canonical_dag import NO_KERNEL, CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.dfmodel_backend.attained.mapping import TaskMapping
from dfcompile.dfmodel_backend.check.held_bytes import touches_of
from dfcompile.dfmodel_backend.check.machines import dram_bytes_per_ns
from dfcompile.dfmodel_backend.check.requirements import joined
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.dfmodel_backend.workload.exchange import Exchange
from dfcompile.distinct import distinct
from dfcompile.errors import VerificationError

NOBODY = -1  # in the place of a kernel or a configuration, of memory


class TaskPlaces:
    """Which kernel and which configuration each task belongs to.

    Attributes:
        dag: the lowering, volumes in elements.
        attained: the mapping.
        names: of kernels with tasks; of tasks without a kernel that of their scope.
        kernel: number of each node's kernel, `NOBODY` of memory, shape [nodes].
        configuration: number of each task's configuration, `NOBODY` of memory, shape [nodes].
        place: number of the configuration of each kernel's tasks.
    """

    def __init__(self, dag: CanonicalDag, attained: TaskMapping) -> None:
        """Find the places of all tasks.

        Raises:
            VerificationError: a task is in no configuration or in two, or a kernel in several.
        """
        self.dag, self.attained = dag, attained
        scopes = [scope.name if scope.kernel == NO_KERNEL else dag.kernels[scope.kernel].name for scope in dag.scopes]
        with_tasks = distinct(dag.node_scope[dag.is_computational]).tolist()
        numbers = {name: number for number, name in enumerate(dict.fromkeys(scopes[scope] for scope in with_tasks))}
        self.names = list(numbers)
        of_scope = np.array([numbers.get(name, NOBODY) for name in scopes], dtype=np.int64)
        self.kernel = np.where(dag.is_computational, of_scope[dag.node_scope], NOBODY)
        self.configuration: Int64 = np.full(dag.nodes_count, NOBODY, dtype=np.int64)
        for place, found in enumerate(attained.configurations):
            nodes = found.part.node[found.part.dag.is_computational]
            if (self.configuration[nodes] != NOBODY).any():
                raise VerificationError(f"configuration {place}: found a task for the second time")
            self.configuration[nodes] = place
        lost = dag.is_computational & (self.configuration == NOBODY)
        if lost.any():
            raise VerificationError(f"node {dag.node_name(int(np.argmax(lost)))!r}: in no configuration")
        self.place: dict[str, int] = {}
        pairs = zip(
            self.kernel[dag.is_computational].tolist(), self.configuration[dag.is_computational].tolist(), strict=True
        )
        for kernel, place in dict.fromkeys(pairs):
            if self.place.setdefault(self.names[kernel], place) != place:
                both = f"{self.place[self.names[kernel]]} and {place}"
                raise VerificationError(f"kernel {self.names[kernel]!r}: found in configurations {both}")


class TaskTimes(TaskPlaces):
    """What each configuration of a mapping takes.

    Attributes:
        system: with the chips in use.
        overlap: of compute, memory and network.
        exchanges: of all chips.
        period_ns: of a cycle.
        touches: what configurations do with memory.
        dram_bytes: of each configuration, on one chip.
        parts_ns: compute, memory and network of each configuration.
        times_ns: of each configuration.
        time_ns: of all of them.
    """

    def __init__(
        self,
        dag: CanonicalDag,
        attained: TaskMapping,
        system: System,
        overlap: Overlap,
        exchanges: Sequence[Exchange],
    ) -> None:
        """Sum up what configurations take.

        Raises:
            VerificationError: as of `TaskPlaces`.
        """
        super().__init__(dag, attained)
        self.system, self.overlap, self.exchanges = system, overlap, exchanges
        self.period_ns = 1 / system.accelerator.frequency_ghz
        self.touches = touches_of(self.dag, self.configuration, attained.schedule.streamed)
        stores = (one.stores for one in attained.configurations)
        self.dram_bytes = [sum(store.dram_read_bytes + store.dram_write_bytes for store in own) for own in stores]
        network_ns = [0.0] * len(attained.configurations)
        for exchange in exchanges:
            network_ns[self.place[exchange.source]] += exchange.time_ns
        self.parts_ns = [
            (one.schedule.makespan_cycles * self.period_ns, size / dram_bytes_per_ns(system), exchanged_ns)
            for one, size, exchanged_ns in zip(attained.configurations, self.dram_bytes, network_ns, strict=True)
        ]
        self.times_ns = [joined(overlap, *parts) for parts in self.parts_ns]
        self.time_ns = sum(self.times_ns)
