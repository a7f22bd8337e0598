"""The audit of where the time of a mapping goes: configurations, spatial blocks, and the parts that add up to it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dfcompile.audit.comparing import ROUNDING, expect_at_least, expect_figures, expect_near, expect_rows
from dfcompile.audit.graph_figures import components_of
from dfcompile.canonical_dag import NO_KERNEL, CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.dfmodel_backend import TaskMapping
from dfcompile.dfmodel_backend.check.machines import PER_S, on_chip
from dfcompile.dfmodel_backend.check.requirements import combined_ns
from dfcompile.dfmodel_backend.check.task_times import TaskTimes
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.errors import VerificationError
from dfcompile.report.mapping_figures import ConfigurationSummary, KernelGroupSummary, TimePartsSummary
from dfcompile.study import Point

if TYPE_CHECKING:  # a model's run needs nothing of designs
    from dfcompile.report.design.figures import StepSummary


def contracts(dag: CanonicalDag) -> Bool:
    """Return whether each node belongs to a contraction, shape [nodes]."""
    of_scope = [scope.kernel != NO_KERNEL and dag.kernels[scope.kernel].variant.is_gemm for scope in dag.scopes]
    return np.array(of_scope, dtype=np.bool_)[dag.node_scope]


def words(dag: CanonicalDag, system: System) -> Int64:
    """Return the words that travel on each edge, shape [edges].

    A word is one element per lane; one per multiply-adder where all tasks that stream to one another are of
    contractions.

    Args:
        dag: volumes in elements.
        system: of chips with such cores.
    """
    chip, task = system.accelerator, dag.is_computational
    narrow = ~contracts(dag)
    if chip.stages_per_core > 1:
        stream = task[dag.edge_source] & task[dag.edge_target]
        component = components_of(dag.nodes_count, dag.edge_source[stream], dag.edge_target[stream])
        has_narrow = np.zeros(dag.nodes_count, dtype=np.bool_)
        has_narrow[component[narrow & task]] = True
        narrow = has_narrow[component]
    width = np.where(narrow, chip.lanes_per_core, chip.lanes_per_core * chip.stages_per_core)
    at_task = np.where(task[dag.edge_source], dag.edge_source, dag.edge_target)
    return -(-dag.edge_volume // width[at_task])


def least_work(dag: CanonicalDag, system: System) -> int:
    """Return the cycles of all tasks in words as wide as can be, as if contractions streamed to nothing else."""
    chip = system.accelerator
    width = np.where(contracts(dag), chip.lanes_per_core * chip.stages_per_core, chip.lanes_per_core)
    return sum((-(-work_of(dag, dag.edge_volume) // width)).tolist())


def work_of(dag: CanonicalDag, moved: Int64) -> Int64:
    """Return the cycles of each task: the most that travels on one of its edges, shape [nodes]."""
    work = np.zeros(dag.nodes_count, dtype=np.int64)
    for ends in (dag.edge_source, dag.edge_target):
        np.maximum.at(work, ends, moved)
    return np.where(dag.is_computational, work, 0)


def work_in_words(attained: TaskMapping) -> Int64:
    """Return the work of each task of a mapping, shape [nodes].

    Raises:
        VerificationError: its schedule is one of other words.
    """
    moved = words(attained.dag, attained.system)
    other = np.flatnonzero(moved != attained.machine_dag.edge_volume)
    if len(other):
        edge = int(other[0])
        raise VerificationError(
            f"edge {edge} of the mapping: found {attained.machine_dag.edge_volume[edge]} words against {moved[edge]}"
        )
    return work_of(attained.dag, moved)


Parts = tuple[float, float, float]  # compute, memory and network, in ns


def audit_bound_by(where: str, found: str, parts: Parts) -> None:
    """Refuse a kind of time that is not the longest.

    Raises:
        VerificationError: naming the figure.
    """
    times = dict(zip(("compute", "memory", "network"), parts, strict=True))
    if found not in times or times[found] < max(parts) * (1 - ROUNDING):
        raise VerificationError(f"{where}: found {found!r} against the longest of {times}")


def audit_time(
    where: str, summary: "ConfigurationSummary | KernelGroupSummary | StepSummary", parts: Parts, time_ns: float
) -> None:
    """Refuse parts of a time that are not these, another time of all, or a kind of time that is not the longest.

    Raises:
        VerificationError: naming the figure.
    """
    compute_s, memory_s, network_s = (part / PER_S for part in parts)
    expect_figures(where, summary, ROUNDING, compute_s=compute_s, memory_s=memory_s)
    expect_figures(where, summary, ROUNDING, network_s=network_s, time_s=time_ns / PER_S)
    audit_bound_by(f"{where}.bound_by", summary.bound_by, parts)


Block = tuple[int, int, int, Int64]  # number of the configuration, first and last cycle, and tasks


def spatial_blocks(times: TaskTimes) -> Iterator[Block]:
    """Yield the spatial blocks of a mapping in order of execution."""
    schedule, now = times.attained.schedule, 0
    for number, one in enumerate(times.attained.configurations):
        tasks, begin = np.flatnonzero(times.configuration == number), now
        block = schedule.block[tasks] if one.schedule.barrier else np.zeros_like(tasks)
        order = np.argsort(block, kind="stable")
        cuts = np.flatnonzero(np.diff(block[order])) + 1
        for own in np.split(tasks[order], cuts):
            end = max(begin, int(schedule.last_out[own].max()))
            yield number, begin, end, own
            begin = end
        now += one.schedule.makespan_cycles


def audit_configurations(where: str, summaries: Sequence[ConfigurationSummary], times: TaskTimes) -> None:
    """Compute the figures of configurations anew.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    configurations = times.attained.configurations
    capacity = on_chip(times.system.accelerator.sram, times.system)
    rows = expect_rows(where, summaries, configurations)
    known = zip(times.parts_ns, times.times_ns, times.dram_bytes, strict=True)
    for (at, summary, one), (parts, time_ns, moved) in zip(rows, known, strict=True):
        expect_figures(at, summary, kernels=one.kernels, dram_bytes=moved, sram_bytes=one.sram_bytes)
        if capacity:
            expect_at_least(f"{at}.sram_bytes: of the chip", capacity, summary.sram_bytes, "what is held")
        audit_time(at, summary, parts, time_ns)


def audit_parts(where: str, summary: TimePartsSummary, point: Point, times: TaskTimes, blocks: Sequence[Block]) -> None:
    """Compute anew where the time goes: each cycle of each processing element is of one kind.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    schedule = times.attained.schedule
    start, last_out, work = schedule.start, schedule.last_out, work_in_words(times.attained)
    busy = waiting = throttled = ended = idle = 0
    for _, begin, end, tasks in blocks:
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
    runs, groups, pes = _runs(point)
    rounds = -(-runs // groups)
    share_s = runs * times.period_ns / pes / PER_S
    # All processing elements for all rounds, less what is told of those that have a task.
    spans = pes * rounds * schedule.makespan_cycles
    unused = spans - runs * schedule.pes * schedule.makespan_cycles
    idle_s = (runs * idle + unused) * times.period_ns / pes / PER_S
    expect_figures(where, summary, ROUNDING, work_s=busy * share_s)
    expect_near(f"{where}.idle_elements_s", summary.idle_elements_s, idle_s, ROUNDING * rounds * times.time_ns / PER_S)
    expect_figures(where, summary, ROUNDING, waiting_s=waiting * share_s, throttled_s=throttled * share_s)
    expect_figures(where, summary, ROUNDING, whole_blocks_s=ended * share_s)
    alone_ns = sum(combined_ns(times.overlap, compute, memory, 0.0) for compute, memory, _ in times.parts_ns)
    compute_ns = sum(compute for compute, _, _ in times.parts_ns)
    slack_s = rounds * ROUNDING * times.time_ns / PER_S
    expect_near(f"{where}.memory_s", summary.memory_s, rounds * (alone_ns - compute_ns) / PER_S, slack_s)
    expect_near(f"{where}.network_s", summary.network_s, rounds * (times.time_ns - alone_ns) / PER_S, slack_s)


def _runs(point: Point) -> tuple[int, int, int]:
    """Return how often the lowering runs, on how many groups of elements, and how many elements there are."""
    ran = point.micro_batches
    return (1, 1, point.pes) if ran is None else (ran.count, ran.at_once, ran.pes)
