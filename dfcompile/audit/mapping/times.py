"""The audit of where the time of a mapping goes: configurations, spatial blocks, and the parts that add up to it."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from dfcompile.audit.comparing import ROUNDING, expect_at_least, expect_figures, expect_near, expect_rows
from dfcompile.audit.machine import dram_bytes_per_ns, on_chip
from dfcompile.audit.mapping.exchanges import ExchangeFigures
from dfcompile.audit.mapping.words import work_in_words
from dfcompile.canonical_dag import NO_KERNEL
from dfcompile.canonical_dag.dag import Int64
from dfcompile.dfmodel_backend import TaskMapping
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.distinct import distinct
from dfcompile.errors import VerificationError
from dfcompile.report.mapping_figures import ConfigurationSummary, KernelGroupSummary, PhaseSummary, TimePartsSummary

PER_S = 1e9  # ns
NOBODY = -1  # in the place of a kernel or a configuration, of memory


def joined_ns(overlap: Overlap, compute_ns: float, memory_ns: float, network_ns: float) -> float:
    """Return what compute, memory and network take together [ko24, section 5]."""
    if overlap is Overlap.NO_OVERLAP:
        return compute_ns + memory_ns + network_ns
    if overlap is Overlap.OVERLAP_COMPUTE_MEMORY:
        return max(compute_ns, memory_ns) + network_ns
    return max(compute_ns, memory_ns, network_ns)


def audit_bound_by(where: str, found: str, compute_ns: float, memory_ns: float, network_ns: float) -> None:
    """Refuse a kind of time that is not the longest.

    Raises:
        VerificationError: naming the figure.
    """
    times = {"compute": compute_ns, "memory": memory_ns, "network": network_ns}
    if found not in times or times[found] < max(times.values()) * (1 - ROUNDING):
        raise VerificationError(f"{where}: found {found!r} against the longest of {times}")


def audit_time(
    where: str,
    summary: ConfigurationSummary | KernelGroupSummary,
    overlap: Overlap,
    compute_ns: float,
    memory_ns: float,
    network_ns: float,
) -> None:
    """Refuse parts of a time that are not these, another sum of them, or a kind of time that is not the longest.

    Raises:
        VerificationError: naming the figure.
    """
    parts = compute_ns, memory_ns, network_ns
    expect_figures(where, summary, ROUNDING, compute_s=compute_ns / PER_S, memory_s=memory_ns / PER_S)
    expect_figures(where, summary, ROUNDING, network_s=network_ns / PER_S, time_s=joined_ns(overlap, *parts) / PER_S)
    audit_bound_by(f"{where}.bound_by", summary.bound_by, *parts)


class TaskTimes:
    """What each configuration of a mapping takes, and when each task of it runs.

    Attributes:
        attained: the mapping.
        overlap: of compute, memory and network.
        names: of kernels with tasks; of tasks without a kernel that of their scope.
        kernel: number of each node's kernel, `NOBODY` of memory, shape [nodes].
        configuration: number of each task's configuration, `NOBODY` of memory, shape [nodes].
        parts_ns: compute, memory and network of each configuration.
        dram_bytes: of each configuration, on one chip.
        exchanged: of all chips.
    """

    def __init__(self, attained: TaskMapping, overlap: Overlap, exchanged: Sequence[ExchangeFigures]) -> None:
        self.attained, self.overlap, self.exchanged = attained, overlap, exchanged
        self.period_ns = 1 / attained.system.accelerator.frequency_ghz
        self.names, self.kernel = _kernels(attained)
        self.configuration: Int64 = np.full(attained.dag.nodes_count, NOBODY, dtype=np.int64)
        for number, one in enumerate(attained.configurations):
            self.configuration[one.part.node[one.part.dag.is_computational]] = number
        self.dram_bytes = [
            sum(store.dram_read_bytes + store.dram_write_bytes for store in one.stores)
            for one in attained.configurations
        ]
        network_ns = [0.0] * len(attained.configurations)
        for exchange, figures in zip(attained.exchanges, exchanged, strict=True):
            network_ns[self.place[exchange.source]] += figures.time_ns
        self.parts_ns = [
            (one.schedule.makespan_cycles * self.period_ns, size / dram_bytes_per_ns(attained.system), exchanged_ns)
            for one, size, exchanged_ns in zip(attained.configurations, self.dram_bytes, network_ns, strict=True)
        ]

    @cached_property
    def place(self) -> dict[str, int]:
        """Number of the configuration of each kernel's tasks."""
        tasks = np.flatnonzero(self.kernel != NOBODY)
        places = np.zeros(len(self.names), dtype=np.int64)
        places[self.kernel[tasks]] = self.configuration[tasks]
        return dict(zip(self.names, places.tolist(), strict=True))

    @cached_property
    def times_ns(self) -> list[float]:
        """Of each configuration."""
        return [joined_ns(self.overlap, *parts) for parts in self.parts_ns]

    @property
    def time_ns(self) -> float:
        """Of all configurations."""
        return sum(self.times_ns)

    @cached_property
    def blocks(self) -> list[tuple[int, int, int, Int64]]:
        """Number of the configuration, first and last cycle, and tasks of each spatial block, in order of execution."""
        schedule, found, now = self.attained.schedule, [], 0
        for number, one in enumerate(self.attained.configurations):
            tasks, begin = np.flatnonzero(self.configuration == number), now
            block = schedule.block[tasks] if one.schedule.barrier else np.zeros_like(tasks)
            order = np.argsort(block, kind="stable")
            cuts = np.flatnonzero(np.diff(block[order])) + 1
            for own in np.split(tasks[order], cuts):
                end = max(begin, int(schedule.last_out[own].max()))
                found.append((number, begin, end, own))
                begin = end
            now += one.schedule.makespan_cycles
        return found


def _kernels(attained: TaskMapping) -> tuple[list[str], Int64]:
    dag = attained.dag
    names = [scope.name if scope.kernel == NO_KERNEL else dag.kernels[scope.kernel].name for scope in dag.scopes]
    with_tasks = distinct(dag.node_scope[dag.is_computational]).tolist()
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names[scope] for scope in with_tasks))}
    of_scope = np.array([numbers.get(name, NOBODY) for name in names], dtype=np.int64)
    return list(numbers), np.where(dag.is_computational, of_scope[dag.node_scope], NOBODY)


def audit_configurations(where: str, summaries: Sequence[ConfigurationSummary], times: TaskTimes) -> None:
    """Compute the figures of configurations anew.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    configurations = times.attained.configurations
    capacity = on_chip(times.attained.system.accelerator.sram, times.attained.system)
    rows = expect_rows(where, summaries, configurations)
    for (at, summary, one), parts, moved in zip(rows, times.parts_ns, times.dram_bytes, strict=True):
        expect_figures(at, summary, kernels=one.kernels, dram_bytes=moved, sram_bytes=one.sram_bytes)
        if capacity:
            expect_at_least(f"{at}.sram_bytes: of the chip", capacity, summary.sram_bytes, "what is held")
        audit_time(at, summary, times.overlap, *parts)


def audit_phases(where: str, summaries: Sequence[PhaseSummary], times: TaskTimes) -> None:
    """Find the spatial blocks of a mapping anew.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    for at, summary, (configuration, begin, end, tasks) in expect_rows(where, summaries, times.blocks):
        expect_figures(at, summary, configuration=configuration, start_cycle=begin, end_cycle=end, tasks=len(tasks))


def audit_parts(where: str, summary: TimePartsSummary, times: TaskTimes) -> None:
    """Compute anew where the time goes: each cycle of each processing element is of one kind.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    schedule = times.attained.schedule
    start, last_out, work = schedule.start, schedule.last_out, work_in_words(times.attained)
    busy = waiting = throttled = ended = idle = 0
    for _, begin, end, tasks in times.blocks:
        span = schedule.pes * (end - begin)
        lasting = last_out[tasks] - start[tasks]
        busy += sum(work[tasks].tolist())
        throttled += sum((lasting - work[tasks]).tolist())
        if schedule.barrier:
            waiting += sum((start[tasks] - begin).tolist())
            ended += sum((end - last_out[tasks]).tolist())
            idle += (schedule.pes - len(tasks)) * (end - begin)
        else:
            idle += span - sum(lasting.tolist())
    share_s = times.period_ns / schedule.pes / PER_S
    expect_figures(where, summary, ROUNDING, work_s=busy * share_s, idle_elements_s=idle * share_s)
    expect_figures(where, summary, ROUNDING, waiting_s=waiting * share_s, throttled_s=throttled * share_s)
    expect_figures(where, summary, ROUNDING, whole_blocks_s=ended * share_s)
    alone_ns = sum(joined_ns(times.overlap, compute, memory, 0.0) for compute, memory, _ in times.parts_ns)
    compute_ns = sum(compute for compute, _, _ in times.parts_ns)
    slack_s = ROUNDING * times.time_ns / PER_S
    expect_near(f"{where}.memory_s", summary.memory_s, (alone_ns - compute_ns) / PER_S, slack_s)
    expect_near(f"{where}.network_s", summary.network_s, (times.time_ns - alone_ns) / PER_S, slack_s)
