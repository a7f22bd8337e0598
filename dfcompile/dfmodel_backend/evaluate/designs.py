"""The pure evaluator of designs: sharding, tiles and configurations give all figures [ko24, section 4]."""

import math
from typing import assert_never

import numpy as np
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Members, Numbers
from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.intra_chip.memory_units import Allocation, PmuModel
from dfcompile.dfmodel_backend.intra_chip.set_times import fewest_pmus, fewest_weight_tiles
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel, DramNeed, dram_need, layers_per_stage
from dfcompile.dfmodel_backend.machine.cost import machine_cost_usd, machine_power_w
from dfcompile.dfmodel_backend.options import NS_PER_S, Overlap, Timed
from dfcompile.dfmodel_backend.workload.design import Batch, Design, Dim, WorkloadKind
from dfcompile.errors import InfeasibleError

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


class StepFigures(Timed, frozen=True):
    """One configuration, per micro-batch and layer."""

    kernels: tuple[str, ...]
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
    design, machine, batch = model.design, model.design.machine, model.design.execution.batch
    place: Numbers = np.array([decision.configs[share.kernel.id] for share in model.shares])  # of each kernel
    steps = _steps(model, decision, place)
    stage_of = np.array([step.stage for step in steps])[place]  # of each kernel
    stages = range(max(decision.stages, default=0) + 1)
    inside = [[step for step in steps if step.stage == stage] for stage in stages]
    sends_ns = model.sends_ns(stage_of[None, :] <= np.array(stages)[:, None])
    step_ns = max(sum(step.time_ns for step in inside[stage]) + float(sends_ns[stage]) for stage in stages)
    batch_ns = batch_time_ns(model, step_ns)
    flop = sum(kernel.flop for kernel in design.kernels) * _repetitions(batch) * batch.copies
    seconds = batch_ns / NS_PER_S
    need = [dram_need(model, np.flatnonzero(stage_of == stage).tolist()) for stage in stages]
    waiting = [max((step.live_bytes for step in inside[stage]), default=0.0) for stage in stages]
    totals = [kept.total + live for kept, live in zip(need, waiting, strict=True)]
    largest = max(stages, key=lambda stage: totals[stage])
    runs = _runs(model) * batch.copies
    return DesignFigures(
        steps=steps,
        step_ns=step_ns,
        bubble=bubble_factor(model),
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
    batch, degrees = model.design.execution.batch, model.degrees
    if batch.kind is WorkloadKind.LLM:
        return float(_repetitions(batch)) * (degrees.tensor * degrees.sequence)
    return float(_repetitions(batch)) / degrees.data * (model.design.machine.chips // batch.copies)


def batch_time_ns(model: DesignModel, step_ns: float) -> float:
    """Return the time of a batch whose slowest stage takes ``step_ns`` per input and layer."""
    design, degrees = model.design, model.degrees
    batch = design.execution.batch
    if batch.kind in (WorkloadKind.HPL, WorkloadKind.FFT):
        return step_ns
    busy = step_ns * bubble_factor(model) * layers_per_stage(model) * batch.global_batch / degrees.data
    trains = any(kernel.backward for kernel in design.kernels)
    hands_on = degrees.pipeline > 1 or model.compatibility.lone_chip_communicates
    if not trains or degrees.pipeline_link is None or not hands_on or batch.layers_in_graph > 1:
        return busy
    word = design.execution.word_bytes
    return busy + 2 * batch.hidden * batch.sequence * word * batch.layers / degrees.pipeline_link.gb_per_s


def bubble_factor(model: DesignModel) -> float:
    """Return ``1 + (PP - 1) / (micro-batches x interleaved layers)``."""
    return 1 + (model.degrees.pipeline - 1) / (float(model.micro_batches) * max(1, layers_per_stage(model) - 1))


def _latency_ns(model: DesignModel, step_ns: float) -> float:
    """Return the time of one input through all stages, with what they hand on."""
    design, degrees = model.design, model.degrees
    batch, link = design.execution.batch, degrees.pipeline_link
    latency_ns = step_ns * layers_per_stage(model) * degrees.pipeline
    if link is None:
        return latency_ns
    handed = batch.hidden * batch.sequence * design.execution.word_bytes / (degrees.tensor * link.gb_per_s)
    return latency_ns + (degrees.pipeline - 1) * (handed + design.machine.link_latency_ns)


def _steps(model: DesignModel, decision: Decision, place: Numbers) -> tuple[StepFigures, ...]:
    numbers = np.arange(max(len(decision.stages), int(place.max(initial=0)) + 1))
    members = place[None, :] == numbers[:, None]
    weight_tiles = np.maximum(1, fewest_weight_tiles(model, members))
    columns = model.steps(members, weight_tiles)
    impossible = np.flatnonzero(~np.isfinite(columns.compute_ns))
    if len(impossible):
        raise _too_large(model, members, int(impossible[0]))
    sram = model.sram_bytes(members, weight_tiles)
    live = model.waiting_bytes(place[None, :] < numbers[:, None], members)
    live = np.where(members.any(axis=1), live, 0.0)  # nothing runs in an empty one: its tiles mean nothing
    tiles, _ = model.tiles_of(members)
    found = []
    for number, row in enumerate(members):
        inside = np.flatnonzero(row).tolist()
        compute_ns, memory_ns, network_ns, time_ns = columns.times_ns(number)
        units = None
        if model.pmu is not None and inside:
            slowest_ns = _hidden_ns(model, memory_ns, network_ns) / int(tiles[number])
            units = _allocation(model, model.pmu, inside, int(weight_tiles[number]), slowest_ns)
            compute_ns = int(tiles[number]) * units.cycles / model.design.machine.frequency_ghz
        found.append(
            StepFigures(
                *(compute_ns, memory_ns, network_ns, time_ns),
                kernels=tuple(model.works[kernel].name for kernel in inside),
                dram_bytes=float(columns.dram_bytes[number]),
                network_bytes=float(columns.network_bytes[number]),
                sram_bytes=float(sram[number]),
                live_bytes=float(live[number]),
                weight_tiles=int(weight_tiles[number]),
                stage=decision.stages[number] if decision.stages else 0,
                units=units,
            )
        )
    return tuple(found)


def _too_large(model: DesignModel, members: Members, number: int) -> InfeasibleError:
    """Return the error for a configuration with too few cores or memory units."""
    found, cores = int(members[number].sum()), model.design.machine.cores
    if model.pmu is None or found > cores:
        return InfeasibleError(f"configuration {number}: found {found} kernels against {cores} cores")
    needed = fewest_pmus(model, members[number : number + 1])[0]
    return InfeasibleError(f"configuration {number}: found {needed:.0f} PMUs that it needs against {model.pmu.pmus}")


def _allocation(model: DesignModel, pmu: PmuModel, inside: list[int], parts: int, slowest_ns: float) -> Allocation:
    """Return the cores and memory units of a configuration, the fewest with which no time is lost.

    Cores wait where traffic or exchange, at the same time, takes longer: then fewer of them do, as in the original's
    second objective, cores and PMUs [ko24].
    """
    least = pmu.least_cycles(inside, parts)
    assert least is not None
    slowest = max(pmu.tables[kernel].cycles[-1] for kernel in inside)
    if math.isfinite(slowest_ns):
        hidden = slowest_ns * model.design.machine.frequency_ghz * (1 + ROUNDING)
        slowest = max(least, math.floor(min(hidden, slowest)))
    found = pmu.allocation(inside, parts, slowest)
    assert found is not None
    return found


def _hidden_ns(model: DesignModel, memory_ns: float, network_ns: float) -> float:
    """Return how long a configuration may compute without being slower than it is anyway."""
    execution = model.design.execution
    if "C" not in execution.counted:
        return math.inf
    memory, network = memory_ns * ("M" in execution.counted), network_ns * ("N" in execution.counted)
    return {
        Overlap.PERFECT_OVERLAP: max(memory, network),
        Overlap.OVERLAP_COMPUTE_MEMORY: memory,
        Overlap.NO_OVERLAP: 0.0,
    }[execution.overlap]


class DesignKernelFigures(Struct, frozen=True):
    """A kernel, per micro-batch and layer.

    Attributes:
        flop: of all its tiles.
        dram_bytes: read from DRAM for it and written to DRAM; those of the kernels of a configuration add up to its.
        time_ns: of its configuration: its kernels run together, from the first tile to the last.
        bound_by: what bounds the configuration.
    """

    flop: float
    dram_bytes: float
    time_ns: float
    bound_by: str


def design_kernel_figures(
    model: DesignModel, decision: Decision, steps: tuple[StepFigures, ...]
) -> tuple[DesignKernelFigures, ...]:
    """Return the figures of all kernels, in the order of the model.

    Args:
        model: of the design under the decision.
        decision: what was decided.
        steps: figures of the configurations, by their numbers.
    """
    place = np.array([decision.configs[share.kernel.id] for share in model.shares])
    members = place[None, :] == np.arange(len(steps))[:, None]
    tiles, runs = model.tiles_of(members)
    reads, writes = model.repeats(members, np.array([step.weight_tiles for step in steps]))
    streamed = np.zeros(len(model.shares))
    for edge in model.edges:
        if place[edge.source] != place[edge.target]:
            streamed[edge.source] += writes[place[edge.source]] * edge.size_bytes
            streamed[edge.target] += reads[place[edge.target]] * edge.size_bytes
    moved = tiles[place] * streamed + model.held.moved
    return tuple(
        DesignKernelFigures(
            flop=float(runs[number] * tiles[number] * share.work.flop),
            dram_bytes=float(runs[number] * moved[kernel]),
            time_ns=steps[number].time_ns,
            bound_by=steps[number].bound_by,
        )
        for kernel, (share, number) in enumerate(zip(model.shares, place.tolist(), strict=True))
    )
