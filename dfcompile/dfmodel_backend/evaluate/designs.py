"""The pure evaluator of designs: sharding, tiles and configurations give all figures [ko24, section 4]."""

import math
from typing import assert_never

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Members
from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.intra_chip.memory_units.cycles import Allocation
from dfcompile.dfmodel_backend.intra_chip.set_model import StepColumns
from dfcompile.dfmodel_backend.intra_chip.set_times import fewest_pmus, fewest_weight_tiles
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel, DramNeed, dram_need, layers_per_stage
from dfcompile.dfmodel_backend.machine.cost import machine_cost_usd, machine_power_w
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.dfmodel_backend.workload.design import Batch, Design, Dim, WorkloadKind
from dfcompile.errors import InfeasibleError

NS_PER_S = 1e9
ROUNDING = 1e-12


class Decision(Struct, frozen=True):
    """What the optimizer decides of a design that has all its degrees.

    Attributes:
        sharding: split dimension by kernel id.
        tiles: parts of the sequence.
        configs: configuration by kernel id, numbered from 0 in order of execution.
        stages: pipeline stage of each configuration; empty if every stage runs the whole graph.
    """

    sharding: dict[int, Dim]
    tiles: int
    configs: dict[int, int]
    stages: tuple[int, ...] = ()


class StepFigures(Struct, frozen=True):
    """One configuration, per micro-batch and layer."""

    kernels: tuple[str, ...]
    compute_ns: float
    memory_ns: float
    network_ns: float
    time_ns: float
    bound_by: str  # the longest of compute, memory and network
    dram_bytes: float  # moved
    network_bytes: float
    sram_bytes: float
    live_bytes: float  # tensors that wait in DRAM
    weight_tiles: int
    stage: int
    units: Allocation | None = None  # cores and memory units, where those are counted


class DesignFigures(Struct, frozen=True):
    """Figures of a design; DRAM and SRAM are those of one chip."""

    steps: tuple[StepFigures, ...]
    step_ns: float  # the configurations of the slowest stage, once
    bubble: float  # factor of the pipeline's filling and draining
    batch_ns: float  # one batch of one copy
    latency_ns: float  # one input through all stages
    flop: float  # of all copies
    utilization: float
    cost_usd: float
    power_w: float
    dram: DramNeed  # of the stage that needs most
    waiting_bytes: float  # most that waits there between configurations
    dram_bytes: float  # most that is needed at a time
    dram_traffic_bytes: float  # of a batch, all chips
    network_traffic_bytes: float  # of a batch, all chips

    @property
    def batch_s(self) -> float:
        """Seconds for a batch."""
        return self.batch_ns / NS_PER_S

    @property
    def energy_j(self) -> float:
        """Energy of a batch."""
        return self.power_w * self.batch_s


def evaluate_design(design: Design, decision: Decision, compatibility: Compatibility = RIGHT) -> DesignFigures:
    """Return all figures of a design; limits of SRAM and DRAM are the checker's.

    Raises:
        UserError: the degrees do not fit the chips, or the batch is no whole number of micro-batches.
        InfeasibleError: a configuration has more kernels than the chip has cores.
    """
    return figures_of(DesignModel(design, decision.sharding, decision.tiles, compatibility), decision)


def figures_of(model: DesignModel, decision: Decision) -> DesignFigures:
    """Return the figures of an assignment of the kernels of a model.

    Raises:
        InfeasibleError: as `evaluate_design`.
    """
    design, batch = model.design, model.design.execution.batch
    steps = _steps(model, decision)
    stages = [[step for step in steps if step.stage == stage] for stage in range(_stage_count(decision))]
    sends = [sent_ns(model, before) for before in _stage_ends(model, decision)]
    step_ns = max(
        sum(step.time_ns for step in inside) + sent for inside, sent in zip(stages, sends, strict=True)
    )  # fmt: skip
    bubble = bubble_factor(model)
    batch_ns = batch_time_ns(model, step_ns)
    flop = sum(kernel.flop for kernel in design.kernels) * _repetitions(batch) * batch.copies
    machine = design.machine
    seconds = batch_ns / NS_PER_S
    need = [dram_need(model, positions) for positions in _stage_members(model, decision)]
    waiting = [max((step.live_bytes for step in inside), default=0.0) for inside in stages]
    totals = [kept.total + live for kept, live in zip(need, waiting, strict=True)]
    largest = max(range(len(totals)), key=lambda stage: totals[stage])
    runs = _runs(model) * batch.copies
    return DesignFigures(
        steps=steps,
        step_ns=step_ns,
        bubble=bubble,
        batch_ns=batch_ns,
        latency_ns=_latency_ns(model, step_ns),
        flop=flop,
        utilization=flop / (seconds * machine.chips * machine.peak_gflops * NS_PER_S) if seconds else 0.0,
        cost_usd=machine_cost_usd(machine, batch.copies, model.compatibility),
        power_w=machine_power_w(machine, batch.copies, model.compatibility),
        dram=need[largest],
        waiting_bytes=waiting[largest],
        dram_bytes=totals[largest],
        dram_traffic_bytes=runs * sum(step.dram_bytes for step in steps),
        network_traffic_bytes=runs * sum(step.network_bytes for step in steps),
    )


def _repetitions(batch: Batch) -> int:
    """Return how often the kernels of the graph are needed for a batch of one copy."""
    match batch.kind:
        case WorkloadKind.LLM:
            return batch.global_batch * (batch.layers if batch.layers_in_graph == 1 else 1)
        case WorkloadKind.DLRM:
            return batch.global_batch
        case WorkloadKind.HPL | WorkloadKind.FFT:
            return 1
    assert_never(batch.kind)


def _runs(model: DesignModel) -> float:
    """Return how often the configurations run in a batch, over all chips of a copy."""
    design, degrees = model.design, model.degrees
    batch = design.execution.batch
    chips = design.machine.chips // batch.copies
    match batch.kind:
        case WorkloadKind.LLM:
            layers = batch.layers if batch.layers_in_graph == 1 else 1
            return float(batch.global_batch) * layers * (degrees.tensor * degrees.sequence)
        case WorkloadKind.DLRM:
            return float(batch.global_batch) / degrees.data * chips
        case WorkloadKind.HPL | WorkloadKind.FFT:
            return float(chips)
    assert_never(batch.kind)


def batch_time_ns(model: DesignModel, step_ns: float) -> float:
    """Return the time of a batch whose slowest stage takes ``step_ns`` per input and layer."""
    batch = model.design.execution.batch
    match batch.kind:
        case WorkloadKind.HPL | WorkloadKind.FFT:
            return step_ns
        case WorkloadKind.LLM | WorkloadKind.DLRM:
            return _pipelined_batch_ns(model, step_ns)
    assert_never(batch.kind)


def _pipelined_batch_ns(model: DesignModel, step_ns: float) -> float:
    design, degrees = model.design, model.degrees
    batch = design.execution.batch
    busy = step_ns * bubble_factor(model) * layers_per_stage(model) * batch.global_batch / degrees.data
    trains = any(kernel.backward for kernel in design.kernels)
    hands_on = degrees.pipeline > 1 or model.compatibility.lone_chip_communicates
    if not trains or degrees.pipeline_link is None or not hands_on or batch.layers_in_graph > 1:
        return busy
    word = design.execution.word_bytes
    return busy + 2 * batch.hidden * batch.sequence * word * batch.layers / degrees.pipeline_link.gb_per_s


def bubble_factor(model: DesignModel) -> float:
    """Return ``1 + (PP - 1) / (micro-batches x interleaved layers)``."""
    per_stage = layers_per_stage(model)
    return 1 + (model.degrees.pipeline - 1) / (float(model.micro_batches) * max(1, per_stage - 1))


def _latency_ns(model: DesignModel, step_ns: float) -> float:
    """Return the time of one input through all stages, with what they hand on."""
    design, degrees = model.design, model.degrees
    batch, link = design.execution.batch, degrees.pipeline_link
    latency_ns = step_ns * layers_per_stage(model) * degrees.pipeline
    if link is None:
        return latency_ns
    handed = batch.hidden * batch.sequence * design.execution.word_bytes / (degrees.tensor * link.gb_per_s)
    return latency_ns + (degrees.pipeline - 1) * (handed + design.machine.link_latency_ns)


def sent_ns(model: DesignModel, done: Members) -> float:
    """Return the time in which a stage hands on what later stages read of the kernels done so far, ``[1, kernel]``."""
    link = model.degrees.pipeline_link
    if link is None or done.all():
        return 0.0
    crossing = sum(
        edge.size_bytes for edge in model.edges if done[0, edge.source] and not done[0, edge.target]
    )  # fmt: skip
    return model.tiles * crossing / link.gb_per_s


def _stage_count(decision: Decision) -> int:
    return max(decision.stages, default=0) + 1


def _stage_of(decision: Decision, config: int) -> int:
    return decision.stages[config] if decision.stages else 0


def _stage_members(model: DesignModel, decision: Decision) -> list[list[int]]:
    members: list[list[int]] = [[] for _ in range(_stage_count(decision))]
    for position, share in enumerate(model.shares):
        members[_stage_of(decision, decision.configs[share.kernel.id])].append(position)
    return members


def _stage_ends(model: DesignModel, decision: Decision) -> list[Members]:
    ends = []
    done = np.zeros((1, len(model.shares)), bool)
    for inside in _stage_members(model, decision):
        done = done.copy()
        done[0, inside] = True
        ends.append(done)
    return ends


def _steps(model: DesignModel, decision: Decision) -> tuple[StepFigures, ...]:
    place = np.array([decision.configs[share.kernel.id] for share in model.shares])
    numbers = np.arange(max(len(decision.stages), int(place.max(initial=0)) + 1))
    members = place[None, :] == numbers[:, None]
    tiles = np.maximum(1, fewest_weight_tiles(model, members))
    columns = model.steps(members, tiles)
    if not np.isfinite(columns.compute_ns).all():
        number = int(np.flatnonzero(~np.isfinite(columns.compute_ns))[0])
        found = int(members[number].sum())
        if model.pmu is not None and found <= model.design.machine.cores:
            needed = fewest_pmus(model, members[number : number + 1])[0]
            raise InfeasibleError(
                f"configuration {number}: found {needed:.0f} PMUs that it needs against {model.pmu.pmus}"
            )
        raise InfeasibleError(
            f"configuration {number}: found {found} kernels against {model.design.machine.cores} cores"
        )
    sram = model.sram_bytes(members, tiles)
    live = model.waiting_bytes(place[None, :] < numbers[:, None], members)
    live = np.where(members.any(axis=1), live, 0.0)  # nothing runs in an empty one: its tiles mean nothing
    found_steps = []
    units = allocations(model, members, tiles, columns)
    for number, unit in enumerate(units):
        times = {
            "compute": _compute_ns(model, unit, float(columns.compute_ns[number]), members[number]),
            "memory": float(columns.memory_ns[number]),
            "network": float(columns.network_ns[number]),
        }
        found_steps.append(
            StepFigures(
                kernels=tuple(model.shares[position].kernel.name for position in np.flatnonzero(members[number])),
                compute_ns=times["compute"],
                memory_ns=times["memory"],
                network_ns=times["network"],
                time_ns=float(columns.time_ns[number]),
                bound_by=max(times, key=lambda kind: times[kind]),
                dram_bytes=float(columns.dram_bytes[number]),
                network_bytes=float(columns.network_bytes[number]),
                sram_bytes=float(sram[number]),
                live_bytes=float(live[number]),
                weight_tiles=int(tiles[number]),
                stage=_stage_of(decision, number),
                units=unit,
            )
        )
    return tuple(found_steps)


def _compute_ns(model: DesignModel, units: Allocation | None, least_ns: float, row: Members) -> float:
    """Return the compute time of a configuration, that of its allocation where units are counted."""
    if units is None:
        return least_ns
    has_inputs = any(model.shares[kernel].kernel.num_input for kernel in np.flatnonzero(row))
    return (1 if has_inputs else model.tiles) * units.cycles / model.design.machine.frequency_ghz


def allocations(
    model: DesignModel, members: Members, weight_tiles: npt.NDArray[np.int64], steps: StepColumns
) -> tuple[Allocation | None, ...]:
    """Return what each configuration, ``[set, kernel]``, takes; None where memory units are not counted.

    Cores wait where traffic or exchange, at the same time, takes longer: then fewer of them do, as in the original's
    second objective, cores and PMUs [ko24].
    """
    return tuple(
        _allocation(model, members[number], int(weight_tiles[number]), steps, number) for number in range(len(members))
    )


def _allocation(
    model: DesignModel, row: npt.NDArray[np.bool_], parts: int, steps: StepColumns, number: int
) -> Allocation | None:
    inside = np.flatnonzero(row).tolist()
    if model.pmu is None or not inside:
        return None
    least = model.pmu.least_cycles(inside, parts)
    assert least is not None
    hidden_ns = _hidden_ns(model, steps, number)
    slowest = max(model.pmu.tables[kernel].cycles[-1] for kernel in inside)
    if math.isfinite(hidden_ns):
        tiles = 1 if any(model.shares[kernel].kernel.num_input for kernel in inside) else model.tiles
        hidden = hidden_ns * model.design.machine.frequency_ghz / tiles * (1 + ROUNDING)
        slowest = max(least, math.floor(min(hidden, slowest)))
    return model.pmu.allocation(inside, parts, slowest)


def _hidden_ns(model: DesignModel, steps: StepColumns, number: int) -> float:
    """Return how long a configuration may compute without being slower than it is anyway."""
    execution = model.design.execution
    if "C" not in execution.counted:
        return math.inf
    memory = float(steps.memory_ns[number]) if "M" in execution.counted else 0.0
    network = float(steps.network_ns[number]) if "N" in execution.counted else 0.0
    match execution.overlap:
        case Overlap.PERFECT_OVERLAP:
            return max(memory, network)
        case Overlap.OVERLAP_COMPUTE_MEMORY:
            return memory
        case Overlap.NO_OVERLAP:
            return 0.0
    assert_never(execution.overlap)
