"""A mapping of a lowering: a schedule of its tasks on a machine, with its data in memories, and where the time goes."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Bool, Int32, Int64
from dfcompile.canonical_dag.part import OUTSIDE
from dfcompile.dfmodel_backend.attained.footprints import largest
from dfcompile.dfmodel_backend.attained.kernel_figures import KernelFigures, kernel_figures
from dfcompile.dfmodel_backend.attained.least_costs import LeastCosts
from dfcompile.dfmodel_backend.attained.search import fastest_chain
from dfcompile.dfmodel_backend.attained.task_model import ChipsInUse, TaskConfiguration, TaskModel
from dfcompile.dfmodel_backend.machine.cost import Roofs, cost_usd, power_w, roofs_of
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import NS_PER_S, Assumption, Overlap, gap_above
from dfcompile.dfmodel_backend.sharding.graphs import Choice
from dfcompile.dfmodel_backend.workload.graph import Exchange
from dfcompile.distinct import numbered
from dfcompile.host.stages import work_of
from dfcompile.options import Timing
from dfcompile.records import replace
from dfcompile.scheduler import NO_PE, Schedule, ScheduleOptions


class TimeParts(Struct, frozen=True):
    """Parts of the time of a mapping, in ns; together they are all of it.

    On P processing elements T cycles are P T cycles of elements. Each of them is of one kind; divided by P they add up
    to T.

    Attributes:
        work_ns: tasks at work, one element per cycle: the work of all tasks / P.
        idle_elements_ns: elements without a task: fewer tasks in a spatial block than there are elements.
        waiting_ns: tasks that have an element and wait for memory that others of their block complete, or for the first
            elements of their streams.
        throttled_ns: tasks that have started and wait for others that stream to them or from them, for their pipelines
            to be empty, or for their ports.
        whole_blocks_ns: tasks that have ended while others of their block run.
        memory_ns: DRAM traffic beyond the schedule.
        network_ns: exchanges between chips beyond both.
    """

    work_ns: float
    idle_elements_ns: float
    waiting_ns: float
    throttled_ns: float
    whole_blocks_ns: float
    memory_ns: float
    network_ns: float


class Phase(Struct, frozen=True):
    """A spatial block of a mapping's schedule; without barriers all blocks of a configuration.

    Attributes:
        configuration: number of the configuration.
        start_cycle: of the schedule.
        end_cycle: of the schedule.
        tasks: at work in it.
    """

    configuration: int
    start_cycle: int
    end_cycle: int
    tasks: int


def phases_of(configurations: Sequence[TaskConfiguration]) -> tuple[Phase, ...]:
    """Return the phases of configurations that follow one another."""
    found = []
    now = 0
    for number, configuration in enumerate(configurations):
        schedule, task = configuration.schedule, configuration.part.dag.is_computational
        ends, counts = np.array([schedule.makespan_cycles]), np.array([np.count_nonzero(task)])
        if schedule.barrier:
            ends, block = _block_ends(schedule, task)
            ends, counts = np.maximum.accumulate(ends), np.bincount(block)
        begin = now
        for end, count in zip(ends.tolist(), counts.tolist(), strict=True):
            found.append(Phase(number, begin, now + end, count))
            begin = now + end
        now += schedule.makespan_cycles
    return tuple(found)


def _block_ends(schedule: Schedule, task: Bool) -> tuple[Int64, Int64]:
    """Return when the last task of each block with tasks ends, and the number of the block of each task."""
    used, number = numbered(schedule.block[task])
    return largest(number, schedule.last_out[task], len(used)), number


def time_parts(
    dag: CanonicalDag, schedule: Schedule, configurations: Sequence[TaskConfiguration], ghz: float, overlap: Overlap
) -> TimeParts:
    """Return the parts of the time of a mapping.

    Args:
        dag: the lowering in words of the machine.
        schedule: of all configurations.
        configurations: in order of execution.
        ghz: frequency of the processing elements.
        overlap: of compute, memory and network.
    """
    task = dag.is_computational
    work = int(dag.work.sum())
    lasting = int((schedule.last_out[task] - schedule.start[task]).sum())
    waiting = whole_blocks = 0
    if schedule.barrier:
        ends, number = _block_ends(schedule, task)
        opened = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        waiting = int((schedule.start[task] - opened[number]).sum())
        whole_blocks = int((ends[number] - schedule.last_out[task]).sum())
    occupied = waiting + lasting + whole_blocks
    idle = schedule.pes * schedule.makespan_cycles - occupied

    def ns(cycles: int) -> float:
        return float(Fraction(cycles, schedule.pes)) / ghz

    on_one_chip_ns = sum(overlap.time_ns(found.compute_ns, found.memory_ns, 0.0) for found in configurations)
    compute_ns = sum(found.compute_ns for found in configurations)
    return TimeParts(
        work_ns=ns(work),
        idle_elements_ns=ns(idle),
        waiting_ns=ns(waiting),
        throttled_ns=ns(lasting - work),
        whole_blocks_ns=ns(whole_blocks),
        memory_ns=on_one_chip_ns - compute_ns,
        network_ns=sum(found.time_ns for found in configurations) - on_one_chip_ns,
    )


NOTHING = 1e-9  # of a time: what floating-point sums of the same parts differ by


class TaskMapping(Struct, frozen=True, eq=False):
    """What a lowering takes on a machine, replayed; figures are of all chips and all runs.

    If the model runs in parts, the lowering is that of a part: so are system, schedule, configurations, phases,
    kernels, exchanges and roofs.

    Attributes:
        dag: the lowering; on several chips the share of one.
        system: with the chips in use.
        machine_dag: the lowering in words of the machine.
        configurations: in order of execution.
        schedule: of all of them, replayed.
        time_s: cycles of the schedule x period, joined with memory and network configuration by configuration.
        bound_time_s: no schedule of these tasks on this machine is faster.
        least_cycles: that the bound rests on: no schedule of the tasks takes fewer; 0 where it is that of
            the shardings that were tried.
        is_optimal: whether the bound is attained.
        is_best_chain: whether it is proved that no other assignment of kernels to configurations is faster with these
            schedules; of graphs with very many assignments it is not.
        parts: where the time goes.
        phases: spatial blocks, in order of execution.
        kernels: each of them, on one chip.
        roofs: of one chip.
        dram_bytes: read and written.
        sram_bytes: of the spatial block with most of them, on one chip.
        cost_usd: price of the machine.
        power_w: power of the machine.
        energy_j: power x time.
        assumptions: that the figures rest on.
        chips: in use.
        sharding: of every kernel; empty on one chip.
        network_chips: along each dimension of the network, the innermost first; empty on one chip.
        exchanges: between chips.
        network_bytes: of messages.
        moved_bytes: that all chips together receive.
        runs: of the lowering.
    """

    dag: CanonicalDag
    system: System
    machine_dag: CanonicalDag
    configurations: tuple[TaskConfiguration, ...]
    schedule: Schedule
    time_s: float
    bound_time_s: float
    least_cycles: int
    is_optimal: bool
    is_best_chain: bool
    parts: TimeParts
    phases: tuple[Phase, ...]
    kernels: tuple[KernelFigures, ...]
    roofs: Roofs
    dram_bytes: int
    sram_bytes: int
    cost_usd: float
    power_w: float
    energy_j: float
    assumptions: tuple[Assumption, ...]
    chips: int = 1
    sharding: tuple[tuple[str, Choice], ...] = ()
    network_chips: tuple[int, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    network_bytes: int = 0
    moved_bytes: int = 0
    runs: int = 1

    @property
    def gap(self) -> float:
        """(time - bound) / bound."""
        return gap_above(self.bound_time_s, self.time_s)


def in_parts(mapping: TaskMapping, whole: System, runs: int, groups: int, least_bytes: int) -> TaskMapping:
    """Return the mapping of a lowering that runs several times, each on inputs of its own.

    Each of several groups of processing elements does one run after another, with its part of SRAM and of DRAM. No
    order of all runs takes less than their work on all processing elements, or what they move together.

    Args:
        mapping: of one run, on the system of a group.
        whole: system of all groups, with the chips in use.
        runs: how many.
        groups: of a chip; one on several chips.
        least_bytes: that all runs move at least.
    """
    cores, rounds = whole.accelerator.cores, -(-runs // groups)
    cycles = -(-runs * int(mapping.machine_dag.work.sum()) // cores)
    if mapping.chips > 1:  # a share may have more work than another one
        cycles = max(runs * (mapping.least_cycles - 1) + 1, 0)
    time_s = rounds * mapping.time_s
    memory_ns = least_bytes / (whole.dram_gb_per_s * whole.chips)
    bound_s = max(cycles / whole.accelerator.frequency_ghz, memory_ns) / NS_PER_S
    if groups == 1:
        bound_s = max(bound_s, mapping.bound_time_s)
    is_optimal = time_s <= bound_s * (1 + NOTHING)
    power = power_w(whole)
    return replace(
        mapping,
        runs=runs,
        time_s=time_s,
        bound_time_s=min(time_s, bound_s) if is_optimal else bound_s,
        is_optimal=is_optimal,
        is_best_chain=mapping.is_best_chain or is_optimal,
        parts=_parts_of_groups(mapping.parts, mapping.schedule.pes, cores, runs, rounds),
        dram_bytes=runs * mapping.dram_bytes,
        sram_bytes=groups * mapping.sram_bytes,
        cost_usd=cost_usd(whole),
        power_w=power,
        energy_j=power * time_s,
        network_bytes=runs * mapping.network_bytes,
        moved_bytes=runs * mapping.moved_bytes,
    )


def _parts_of_groups(one: TimeParts, pes: int, cores: int, runs: int, rounds: int) -> TimeParts:
    """Return the parts of the time of all runs; elements in no group, and groups without a run, are idle."""
    memory_ns, network_ns = rounds * one.memory_ns, rounds * one.network_ns
    shares = one.work_ns, one.waiting_ns, one.throttled_ns, one.whole_blocks_ns
    work, waiting, throttled, whole_blocks = (runs * pes * share / cores for share in shares)
    all_ns = rounds * (sum(astuple(one)) - one.memory_ns - one.network_ns)
    idle = all_ns - work - waiting - throttled - whole_blocks
    return TimeParts(work, max(idle, 0.0), waiting, throttled, whole_blocks, memory_ns, network_ns)


def map_tasks(model: TaskModel) -> TaskMapping:
    """Return the fastest mapping that is found for a lowering on one chip, or on several that share it.

    The bound is of these chips' shares alone.

    Args:
        model: of the lowering on the chip.

    Raises:
        InfeasibleError: DRAM does not hold what must be alive at once.
    """
    with work_of(2) as steps:
        configurations, is_proved = fastest_chain(model)
        steps.add()
        shared = model.chips or ChipsInUse(model.system.one_chip, (), (), ())
        system, exchanges = shared.system, shared.exchanges
        schedule = concatenated(model.machine_dag, configurations, model.scheduling)
        time_ns = sum(configuration.time_ns for configuration in configurations)
        least = LeastCosts(model)
        bound_ns = least.bound_ns()
        is_optimal = time_ns <= bound_ns * (1 + NOTHING)
        power = power_w(system)
        return TaskMapping(
            dag=model.dag,
            system=system,
            machine_dag=model.machine_dag,
            configurations=configurations,
            schedule=schedule,
            time_s=time_ns / NS_PER_S,
            bound_time_s=min(time_ns, bound_ns) / NS_PER_S if is_optimal else bound_ns / NS_PER_S,
            least_cycles=least.cycles,
            is_optimal=is_optimal,
            is_best_chain=is_proved or is_optimal,
            parts=time_parts(
                model.machine_dag, schedule, configurations, system.accelerator.frequency_ghz, model.overlap
            ),
            phases=phases_of(configurations),
            kernels=kernel_figures(model, schedule, configurations),
            roofs=roofs_of(system),
            dram_bytes=system.chips * sum(configuration.dram_bytes for configuration in configurations),
            sram_bytes=max((configuration.sram_bytes for configuration in configurations), default=0),
            cost_usd=cost_usd(system),
            power_w=power,
            energy_j=power * time_ns / NS_PER_S,
            assumptions=_assumptions(system),
            chips=system.chips,
            sharding=shared.sharding,
            network_chips=tuple(dimension.chips for dimension in system.network.dimensions),
            exchanges=exchanges,
            network_bytes=sum(exchange.message_bytes for exchange in exchanges),
            moved_bytes=sum(exchange.moved_bytes for exchange in exchanges),
        )


def _assumptions(system: System) -> tuple[Assumption, ...]:
    chip = system.accelerator
    words = f"{chip.lanes_per_core} element{'s' * (chip.lanes_per_core > 1)} of each edge per cycle"
    if chip.stages_per_core > 1:
        products = chip.lanes_per_core * chip.stages_per_core
        words += f"; {products} where all tasks that stream to one another are of contractions"
    return (
        Assumption("a task on a core", words, "[dematteis23], [ko24, section 4]"),
        Assumption(
            "data of a configuration",
            "SRAM holds, cycle by cycle, arrays and what tasks read at a time that save most DRAM traffic per byte and "
            "cycle; the rest is read each time; any number of tasks read an element in a cycle",
            "dfcompile",
        ),
    )


def concatenated(
    dag: CanonicalDag, configurations: Sequence[TaskConfiguration], scheduling: ScheduleOptions
) -> Schedule:
    """Return the schedule of a lowering whose configurations follow one another.

    Memory is complete when the last task that writes to it has ended.

    Args:
        dag: the lowering, in words of the machine.
        configurations: in order of execution; together they hold every task once.
        scheduling: of each of them.
    """
    columns: dict[str, npt.NDArray[Any]] = {
        "block": np.zeros(dag.nodes_count, dtype=np.int32),
        "pe": np.full(dag.nodes_count, NO_PE, dtype=np.int32),
        **{name: np.zeros(dag.nodes_count, dtype=np.int64) for name in ("start", "first_out", "last_out")},
        "streamed": np.zeros(dag.edges_count, dtype=np.bool_),
        "fifo_capacity": np.zeros(dag.edges_count, dtype=np.int64),
    }
    now, blocks = 0, 0
    for configuration in configurations:
        part, own = configuration.part, configuration.schedule
        here = np.flatnonzero((part.node != OUTSIDE) & part.dag.is_computational)
        there = part.node[here]
        # Blocks of memory alone are none of the whole.
        used, number = numbered(own.block[here])
        columns["block"][there], columns["pe"][there] = blocks + number, own.pe[here]
        for name in ("start", "first_out", "last_out"):
            columns[name][there] = now + getattr(own, name)[here]
        edges = part.edge[own.streamed]  # each of one configuration
        columns["streamed"][edges], columns["fifo_capacity"][edges] = True, own.fifo_capacity[own.streamed]
        now += own.makespan_cycles
        blocks += len(used)
    _complete_memory(dag, columns["block"], tuple(columns[name] for name in ("start", "first_out", "last_out")))
    for column in columns.values():
        column.setflags(write=False)
    return Schedule(
        pes=scheduling.pes,
        partition=scheduling.partition,
        barrier=all(configuration.schedule.barrier for configuration in configurations),
        timing=Timing.EXACT,
        makespan_cycles=now,
        hardware=scheduling.hardware,
        **columns,
    )


def _complete_memory(dag: CanonicalDag, block: Int32, times: Sequence[Int64]) -> None:
    """Put each buffer into the block of its last writer, complete when that has ended."""
    task = dag.is_computational
    into_memory = ~task[dag.edge_target]
    for writers in (task, ~task):  # buffers, then the mark of the end
        edges = np.flatnonzero(writers[dag.edge_source] & into_memory)
        source, target = dag.edge_source[edges], dag.edge_target[edges]
        np.maximum.at(block, target, block[source])
        ended = times[-1][source]
        for column in times:
            np.maximum.at(column, target, ended)
