"""What each kernel of a mapping does: its operations, what it moves, how long it takes and what bounds it."""

from collections.abc import Sequence

import numpy as np

from dfcompile.canonical_dag import Kernel
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.canonical_dag.part import OUTSIDE
from dfcompile.dfmodel_backend.attained.footprints import sums
from dfcompile.dfmodel_backend.attained.stores import StoreTable
from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration, TaskModel
from dfcompile.dfmodel_backend.attained.task_units import NO_UNIT, owners_of
from dfcompile.dfmodel_backend.options import Timed
from dfcompile.distinct import numbered
from dfcompile.scheduler import Schedule
from dfcompile.scheduler.operator_times import shared


class KernelFigures(Timed, frozen=True, kw_only=True):
    """A kernel in the configuration that it is in, on one chip.

    A roofline holds for it: operations / time is at most operations / bytes x bandwidth, of DRAM and of the network,
    and at most the peak of the chip, unless a task joins more streams than it has operations in a cycle: it takes
    an element of each at once [dematteis23]. Compute lasts from the start of its first task to the end of its last one;
    memory is DRAM bytes / bandwidth; network is that of the exchanges of its results.

    Attributes:
        name: of the kernel; of tasks without one, of their scope.
        op: type of its canonical operator; empty of tasks without a kernel.
        configuration: number.
        flop: ``2 outer m k n`` of a contraction, ``outer m n`` of any other kernel; 0 of tasks without a kernel.
        dram_bytes: read from DRAM for it and written to DRAM; what several kernels read together is shared in
            proportion to what each of them reads.
        chip_bytes: that its tasks read and write, through FIFOs and memories, each element as often as they do.
        received_bytes: that the exchanges of its results bring to all chips.
    """

    name: str
    op: str
    configuration: int
    flop: int
    dram_bytes: int
    chip_bytes: int
    received_bytes: int


def kernel_figures(
    model: TaskModel, schedule: Schedule, configurations: Sequence[TaskConfiguration]
) -> tuple[KernelFigures, ...]:
    """Return the figures of all kernels with tasks, in the order of configurations, then of the lowering.

    Args:
        model: of the lowering on a chip.
        schedule: of all configurations.
        configurations: in order of execution; together they hold every task once.
    """
    kernel, owners = owners_of(model.dag)
    place = np.zeros(len(owners), dtype=np.int64)
    for number, configuration in enumerate(configurations):
        part = configuration.part
        place[kernel[part.node[(part.node != OUTSIDE) & part.dag.is_computational]]] = number
    tasks = np.flatnonzero(kernel != NO_UNIT)
    first, last = np.full(len(owners), schedule.makespan_cycles), np.zeros(len(owners), dtype=np.int64)
    np.minimum.at(first, kernel[tasks], schedule.start[tasks])
    np.maximum.at(last, kernel[tasks], schedule.last_out[tasks])
    moved = _dram_bytes(model.stores, (kernel, place), ~schedule.streamed, configurations)
    chip_bytes = np.zeros(len(owners), dtype=np.int64)
    for ends in (model.dag.edge_source, model.dag.edge_target):
        at_tasks = model.stores.moves_data & (kernel[ends] != NO_UNIT)
        chip_bytes += sums(kernel[ends[at_tasks]], model.stores.edge_bytes[at_tasks], len(owners))
    figures = []
    for at in np.argsort(place, kind="stable").tolist():
        owner, exchanges = owners[at], () if model.chips is None else model.chips.exchanges
        exchanges = tuple(one for one in exchanges if one.source == owner.name)
        parts_ns = (
            int(last[at] - first[at]) / model.system.accelerator.frequency_ghz,
            moved[at] / model.system.dram_gb_per_s,
            sum((one.time_ns for one in exchanges), 0.0),
        )
        figures.append(
            KernelFigures(
                *parts_ns,
                model.overlap.time_ns(*parts_ns),
                name=owner.name,
                op=owner.op if isinstance(owner, Kernel) else "",
                configuration=int(place[at]),
                flop=owner.flop if isinstance(owner, Kernel) else 0,
                dram_bytes=moved[at],
                chip_bytes=int(chip_bytes[at]),
                received_bytes=sum(one.moved_bytes for one in exchanges),
            )
        )
    return tuple(figures)


def _dram_bytes(
    stores: StoreTable, kernels: tuple[Int64, Int64], stored: Bool, configurations: Sequence[TaskConfiguration]
) -> list[int]:
    """Return the DRAM bytes of each kernel; those of a configuration are together all of its bytes.

    Args:
        stores: of the lowering.
        kernels: of each node its kernel, shape [nodes], and of each kernel its configuration, shape [kernels].
        stored: whether each edge passes through memory, shape [edges].
        configurations: in order of execution.
    """
    (kernel, place), dag = kernels, stores.dag
    edges = np.flatnonzero(stored & stores.moves_data)
    source, target = dag.edge_source[edges], dag.edge_target[edges]
    store = dag.node_scope[np.where(dag.is_buffer[target], target, source)].astype(np.int64)
    named = [{use.name: use for use in configuration.stores} for configuration in configurations]
    moved = [0] * len(place)
    for ends, is_read in ((target, True), (source, False)):
        which = kernel[ends] != NO_UNIT
        pairs, at = numbered(store[which] * len(moved) + kernel[ends[which]])
        amounts: dict[tuple[int, int], dict[int, int]] = {}
        sizes = sums(at, stores.edge_bytes[edges[which]], len(pairs))
        for pair, amount in zip(pairs.tolist(), sizes.tolist(), strict=True):
            at_store, own = divmod(pair, len(moved))
            amounts.setdefault((int(place[own]), at_store), {})[own] = amount
        for (number, at_store), parts in amounts.items():
            use = named[number][stores.name(at_store)]
            total = use.dram_read_bytes if is_read else use.dram_write_bytes
            for own, bytes_ in zip(parts, shared(total, list(parts.values())), strict=True):
                moved[own] += bytes_
    return moved
