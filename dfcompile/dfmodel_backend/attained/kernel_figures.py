"""What each kernel of a mapping does: its operations, what it moves, how long it takes and what bounds it."""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import Kernel
from dfcompile.canonical_dag.dag import Int64, Scope
from dfcompile.canonical_dag.part import OUTSIDE
from dfcompile.dfmodel_backend.attained.stores import StoreTable
from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration, TaskModel
from dfcompile.dfmodel_backend.attained.task_units import NO_UNIT, owners_of
from dfcompile.distinct import numbered
from dfcompile.scheduler.operator_times import shared

_Kernels = tuple[Int64, list[Kernel | Scope]]  # see `owners_of`


class KernelFigures(Struct, frozen=True):
    """A kernel in the configuration that it is in, on one chip.

    A roofline holds for it: operations / time is at most operations / bytes x bandwidth, of DRAM and of the network,
    and at most the peak of the chip, unless a task joins more streams than it has operations in a cycle: it takes
    an element of each at once [dematteis23].

    Attributes:
        name: of the kernel; of tasks without one, of their scope.
        op: type of its canonical operator; empty of tasks without a kernel.
        configuration: number.
        flop: ``2 outer m k n`` of a contraction, ``outer m n`` of any other kernel; 0 of tasks without a kernel.
        dram_bytes: read from DRAM for it and written to DRAM; what several kernels read together is shared in
            proportion to what each of them reads.
        chip_bytes: that its tasks read and write, through FIFOs and memories, each element as often as they do.
        received_bytes: that the exchanges of its results bring to all chips.
        compute_ns: from the start of its first task to the end of its last one.
        memory_ns: DRAM bytes / bandwidth.
        network_ns: of the exchanges of its results.
        time_ns: of all, overlapped as in its configuration.
    """

    name: str
    op: str
    configuration: int
    flop: int
    dram_bytes: int
    chip_bytes: int
    received_bytes: int
    compute_ns: float
    memory_ns: float
    network_ns: float
    time_ns: float

    @property
    def bound_by(self) -> str:
        """Which of compute, memory and network takes longest."""
        times = {"compute": self.compute_ns, "memory": self.memory_ns, "network": self.network_ns}
        return max(times, key=lambda kind: times[kind])


def kernel_figures(model: TaskModel, configurations: Sequence[TaskConfiguration]) -> tuple[KernelFigures, ...]:
    """Return the figures of all kernels with tasks, in the order of configurations, then of the lowering.

    Args:
        model: of the lowering on a chip.
        configurations: in order of execution; together they hold every task once.
    """
    of_node, owners = owners_of(model.dag)
    chip_bytes = _chip_bytes(model.stores, of_node, len(owners))
    return tuple(
        figures
        for number, configuration in enumerate(configurations)
        for figures in _of_configuration(model, (of_node, owners), chip_bytes, number, configuration)
    )


def _chip_bytes(stores: StoreTable, of_node: Int64, kernels: int) -> Int64:
    """Return the bytes on all edges at the tasks of each kernel, shape [kernels]."""
    sums = np.zeros(kernels, dtype=np.int64)
    for ends in (stores.dag.edge_source, stores.dag.edge_target):
        kernel = of_node[ends]
        which = stores.moves_data & (kernel != NO_UNIT)
        np.add.at(sums, kernel[which], stores.edge_bytes[which])
    return sums


def _of_configuration(
    model: TaskModel, kernels: _Kernels, chip_bytes: Int64, number: int, configuration: TaskConfiguration
) -> Iterator[KernelFigures]:
    part, schedule = configuration.part, configuration.schedule
    of_node, owners = kernels
    here = np.flatnonzero((part.node != OUTSIDE) & part.dag.is_computational)
    kernel = of_node[part.node[here]]
    first = np.full(len(owners), schedule.makespan_cycles, dtype=np.int64)
    last = np.zeros(len(owners), dtype=np.int64)
    np.minimum.at(first, kernel, schedule.start[here])
    np.maximum.at(last, kernel, schedule.last_out[here])
    moved = _dram_bytes(model.stores, kernels, configuration)
    for place in np.flatnonzero(np.bincount(kernel)).tolist():
        owner, name = owners[place], owners[place].name
        exchanges = [] if model.chips is None else [one for one in model.chips.exchanges if one.source == name]
        compute_ns = int(last[place] - first[place]) / model.system.accelerator.frequency_ghz
        memory_ns = moved[place] / model.system.dram_gb_per_s
        network_ns = sum((one.time_ns for one in exchanges), 0.0)
        yield KernelFigures(
            name=name,
            op=owner.op if isinstance(owner, Kernel) else "",
            configuration=number,
            flop=owner.flop if isinstance(owner, Kernel) else 0,
            dram_bytes=moved[place],
            chip_bytes=int(chip_bytes[place]),
            received_bytes=sum(one.moved_bytes for one in exchanges),
            compute_ns=compute_ns,
            memory_ns=memory_ns,
            network_ns=network_ns,
            time_ns=model.overlap.time_ns(compute_ns, memory_ns, network_ns),
        )


def _dram_bytes(stores: StoreTable, kernels: _Kernels, configuration: TaskConfiguration) -> list[int]:
    """Return the DRAM bytes of a configuration, kernel by kernel; together they are all of its bytes."""
    of_node, owners = kernels
    dag, part = stores.dag, configuration.part
    inside = np.zeros(dag.nodes_count, dtype=np.bool_)
    inside[part.node[(part.node != OUTSIDE) & part.dag.is_computational]] = True
    edges = part.edge[~configuration.schedule.streamed & stores.moves_data[part.edge]]
    source, target = dag.edge_source[edges], dag.edge_target[edges]
    store = stores.of_node[np.where(dag.is_buffer[target], target, source)]
    named = {use.name: use for use in configuration.stores}
    moved = [0] * len(owners)
    for ends, is_read in ((target, True), (source, False)):
        which = inside[ends]
        amounts: dict[int, dict[int, int]] = {}
        pairs, at = numbered(store[which] * len(moved) + of_node[ends[which]])
        sums = np.zeros(len(pairs), dtype=np.int64)
        np.add.at(sums, at, stores.edge_bytes[edges[which]])
        for pair, amount in zip(pairs.tolist(), sums.tolist(), strict=True):
            amounts.setdefault(pair // len(moved), {})[pair % len(moved)] = amount
        for place, parts in amounts.items():
            use = named[stores.name(place)]
            total = use.dram_read_bytes if is_read else use.dram_write_bytes
            for kernel, bytes_ in zip(parts, shared(total, list(parts.values())), strict=True):
                moved[kernel] += bytes_
    return moved
