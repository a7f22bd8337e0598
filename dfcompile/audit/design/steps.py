"""What each configuration of a design takes per input and layer: bytes, and times joined as the file says [ko24]."""

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from dfcompile.audit.design.groups import Groups
from dfcompile.audit.mapping.times import joined_ns
from dfcompile.dfmodel_backend import Decision, StepFigures
from dfcompile.dfmodel_backend.check.collectives import is_known
from dfcompile.dfmodel_backend.check.designs import levels_of, sram_of, traffic_of
from dfcompile.dfmodel_backend.check.network import Conversions, conversions_of, network_time_ns, sent_by
from dfcompile.dfmodel_backend.check.shares import extents_of
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.workload.design import Design, DesignKernel, Dim, WorkloadKind

ONCE = Collective.ALL_REDUCE_PERIODIC


class Step(Struct, frozen=True):
    """A configuration, per input and layer.

    Attributes:
        stage: of the pipeline.
        kernels: in the order of the file.
        tiles: that follow one another.
        runs: of all tiles, one per input of kernels that take several.
        traffic: bytes of DRAM of each kernel, by its id.
        live_bytes: of tensors that wait in DRAM meanwhile.
        sram_bytes: in use.
        network_bytes: that a chip exchanges.
        compute_ns: of its splits of cores.
        memory_ns: of its DRAM traffic.
        network_ns: of its exchanges.
        time_ns: of all of them, as often as it runs.
    """

    stage: int
    kernels: tuple[DesignKernel, ...]
    tiles: int
    runs: int
    traffic: Mapping[int, float]
    live_bytes: float
    sram_bytes: float
    network_bytes: float
    compute_ns: float
    memory_ns: float
    network_ns: float
    time_ns: float

    @property
    def dram_bytes(self) -> float:
        """That it moves."""
        return sum(self.traffic.values())


def steps_of(
    design: Design, decision: Decision, given: Sequence[StepFigures], compatibility: Compatibility
) -> tuple[Step, ...]:
    """Return the configurations of a design.

    Args:
        design: with its degrees.
        decision: what was decided of it.
        given: of each configuration the tiles of its weights and the time of its splits of cores, which the checker
            has accepted; and the exchanges of networks whose times nobody else knows.
        compatibility: flaws to repeat.
    """
    levels, conversions = levels_of(design), conversions_of(design, decision.sharding, compatibility)
    inside = [
        tuple(kernel for kernel in design.kernels if decision.configs[kernel.id] == number)
        for number in range(len(given))
    ]
    return tuple(
        _step(design, decision, number, kernels, given[number], compatibility, levels, conversions)
        for number, kernels in enumerate(inside)
    )


def _step(
    design: Design,
    decision: Decision,
    number: int,
    kernels: tuple[DesignKernel, ...],
    given: StepFigures,
    compatibility: Compatibility,
    levels: Mapping[int, int],
    conversions: Conversions,
) -> Step:
    most_inputs = max((kernel.num_input for kernel in kernels), default=0)
    tiles, runs = (1, most_inputs) if most_inputs else (decision.tiles, 1)
    traffic = traffic_of(design, decision, kernels, given.weight_tiles, compatibility)
    network_ns = given.network_ns
    if kernels and is_known(design.machine.topology, design.machine.links):
        network_ns = network_time_ns(
            design,
            decision.sharding,
            kernels,
            lambda kernel: extents_of(design, decision, kernel),
            tiles,
            compatibility,
            conversions,
        )
    memory_ns = sum(traffic.values()) / design.machine.dram_gb_per_s
    times = [
        time_ns if kind in design.execution.counted else 0.0
        for kind, time_ns in zip("CMN", (given.compute_ns, memory_ns, network_ns), strict=True)
    ]
    return Step(
        stage=decision.stages[number] if decision.stages else 0,
        kernels=kernels,
        tiles=tiles,
        runs=runs,
        traffic=traffic,
        live_bytes=_live_bytes(design, decision, number, compatibility) * tiles if kernels else 0.0,
        sram_bytes=sram_of(design, decision, kernels, given.weight_tiles, compatibility, levels),
        network_bytes=_exchanged_bytes(design, decision, kernels, tiles, compatibility, conversions),
        compute_ns=given.compute_ns,
        memory_ns=memory_ns,
        network_ns=network_ns,
        time_ns=runs * joined_ns(design.execution.overlap, *times),
    )


def tile_bytes(design: Design, decision: Decision, kernel: DesignKernel) -> int:
    """Return the bytes of a tile of what a kernel makes, on one chip."""
    rows, _, columns = extents_of(design, decision, kernel)
    return rows * columns * design.execution.word_bytes


def _live_bytes(design: Design, decision: Decision, number: int, compatibility: Compatibility) -> float:
    """Return the bytes of a tile of all tensors that a configuration finds in DRAM, or leaves there for later ones."""
    kind = design.execution.batch.kind
    if compatibility.other_tensors_ignored and kind in (WorkloadKind.HPL, WorkloadKind.FFT):
        return 0.0
    kernels = {kernel.id: kernel for kernel in design.kernels}
    live = 0
    for edge in design.edges:
        made, read = decision.configs[edge.source], decision.configs[edge.target]
        if not edge.zero_out and (made < number <= read or made == number < read):
            live += tile_bytes(design, decision, kernels[edge.source])
    return live * max(1, design.execution.batch.micro_batch)


def _exchanged_bytes(
    design: Design,
    decision: Decision,
    kernels: Sequence[DesignKernel],
    tiles: int,
    compatibility: Compatibility,
    conversions: Conversions,
) -> float:
    """Return the bytes that a chip exchanges in a configuration."""
    kind, batch = design.execution.batch.kind, design.execution.batch
    if kind is WorkloadKind.LLM:
        return _language_model_bytes(design, decision, kernels, tiles, compatibility, conversions)
    chips = [link.chips for link in design.machine.links]
    everyone, total = math.prod(chips), 0.0
    if everyone == 1 and not compatibility.lone_chip_communicates:
        return total
    for kernel in (kernel for kernel in kernels if kernel.collective is not Collective.NONE):
        size = kernel.collective_bytes
        if kind is WorkloadKind.HPL:
            down = chips[-1]
            across = everyone // down if len(chips) > 1 else 1
            total += size / across if across > 1 else 0.0
            if kernel.collective_2 is Collective.POINT_TO_POINT:
                total += size / down if down > 1 else 0.0
        elif kind is WorkloadKind.FFT:
            total += size / everyone**2
        else:
            total += size / (batch.global_batch / everyone) if kernel.collective is ONCE else size
    return total


def _language_model_bytes(
    design: Design,
    decision: Decision,
    kernels: Sequence[DesignKernel],
    tiles: int,
    compatibility: Compatibility,
    conversions: Conversions,
) -> float:
    """Return the same of a language model: a gather brings each chip what all others have; gradients once a batch."""
    groups = Groups(design)
    sent = sent_by(
        design,
        decision.sharding,
        kernels,
        lambda kernel: extents_of(design, decision, kernel),
        compatibility,
        conversions,
    )
    total = 0.0
    for kernel, collective, size in sent:
        everyone = groups.data if collective is ONCE else groups.tensor
        if everyone == 1 and not compatibility.lone_chip_communicates:
            continue
        if collective is ONCE:
            parts = 1
            if kernel.tiling in (Dim.OUTER, Dim.M, Dim.N) and not kernel.num_input:
                parts = 1 if compatibility.weights_of_one_tile else decision.tiles
            total += parts * size / groups.micro_batches(design)
        else:
            is_split = decision.sharding.get(kernel.id) in (Dim.OUTER, Dim.M, Dim.N)
            is_whole = collective in (Collective.ALL_GATHER, Collective.ALL_TO_ALL) and is_split
            shares = groups.tensor if is_whole and not compatibility.layouts_change_by_share else 1
            total += tiles * shares * size
    for kernel in kernels if groups.sequence > 1 or compatibility.lone_chip_communicates else ():
        if kernel.collective_2 in (Collective.ALL_REDUCE, Collective.ALL_GATHER):
            total += tiles * tile_bytes(design, decision, kernel)
    return total
