"""Checks a solved design from first principles; shares no formula with the evaluator or the solvers."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dfcompile.dfmodel_backend.check.collectives import is_known
from dfcompile.dfmodel_backend.check.memory_units import check_units
from dfcompile.dfmodel_backend.check.network import Conversions, conversions_of, network_time_ns
from dfcompile.dfmodel_backend.check.shares import extents_of
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.evaluate.designs import Decision, DesignFigures, StepFigures
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.machine.network.topologies import topology
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.dfmodel_backend.workload.design import Design, DesignEdge, DesignKernel, Dim, WorkloadKind
from dfcompile.errors import VerificationError

RELATIVE = 1e-9
SOONER = 1e-6  # relative; a slowest kernel that could be faster by so much, and a cycle, is no best split of cores


def check_design(design: Design, decision: Decision, figures: DesignFigures, compatibility: Compatibility) -> None:
    """Check a decision: every kernel placed, edges forward, limits kept; and compute, DRAM traffic, SRAM and times.

    Raises:
        VerificationError: naming the configuration or the kernel, found against expected.
    """
    _check_places(design, decision)
    levels = levels_of(design)
    conversions = conversions_of(design, decision.sharding, compatibility)
    for number, step in enumerate(figures.steps):
        inside = [kernel for kernel in design.kernels if decision.configs[kernel.id] == number]
        _same(f"configuration {number}: kernels", float(len(inside)), float(len(step.kernels)))
        if inside:
            _check_network(design, decision, step, inside, compatibility, conversions, f"configuration {number}")
            _check_step(design, decision, step, inside, compatibility, number, levels)
    capacity = design.machine.dram_bytes
    if capacity and figures.dram_bytes > capacity * (1 + RELATIVE):
        raise VerificationError(f"design: found {figures.dram_bytes} bytes of DRAM against {capacity}")
    if not decision.stages:
        _same("design: time of all configurations", sum(step.time_ns for step in figures.steps), figures.step_ns)


def _check_places(design: Design, decision: Decision) -> None:
    slots = design.execution.configurations or len(design.kernels)
    for kernel in design.kernels:
        if kernel.id not in decision.configs:
            raise VerificationError(f"kernel {kernel.name!r}: found in no configuration")
        if not decision.stages and not 0 <= decision.configs[kernel.id] < slots:
            raise VerificationError(f"kernel {kernel.name!r}: found in configuration {decision.configs[kernel.id]}")
    if design.execution.kernel_by_kernel or slots == len(design.kernels):
        return  # positions in the file are the order, whatever the edges say [ko24]
    for edge in design.edges:
        if decision.configs[edge.source] > decision.configs[edge.target]:
            raise VerificationError(f"connection {edge.source} to {edge.target}: runs backwards")


def _check_step(
    design: Design,
    decision: Decision,
    step: StepFigures,
    inside: list[DesignKernel],
    compatibility: Compatibility,
    number: int,
    levels: dict[int, int],
) -> None:
    where = f"configuration {number}"
    tiles = 1 if any(kernel.num_input for kernel in inside) else decision.tiles
    _check_sram(design, step, sram_of(design, decision, inside, step.weight_tiles, compatibility, levels), where)
    if step.weight_tiles > 1 and len(inside) > 1:
        raise VerificationError(f"{where}: weights in tiles, but {len(inside)} kernels against one")
    traffic = sum(traffic_of(design, decision, inside, step.weight_tiles, compatibility).values())
    _same(f"{where}: DRAM traffic", step.dram_bytes, traffic)
    _same(f"{where}: memory", step.memory_ns, step.dram_bytes / design.machine.dram_gb_per_s)
    if design.machine.pmu is None:
        _check_compute(design, decision, step, inside, tiles, where)
    else:
        check_units(design, decision, step, compatibility, levels, where)
    inputs = max(1, *(kernel.num_input for kernel in inside))
    times = [
        time_ns if kind in design.execution.counted else 0.0
        for kind, time_ns in zip("CMN", (step.compute_ns, step.memory_ns, step.network_ns), strict=True)
    ]
    expected = {
        Overlap.NO_OVERLAP: sum(times),
        Overlap.PERFECT_OVERLAP: max(times),
        Overlap.OVERLAP_COMPUTE_MEMORY: max(times[:2]) + times[2],
    }[design.execution.overlap]
    _same(f"{where}: time", step.time_ns, inputs * expected)


def _edges_at(
    design: Design, decision: Decision, inside: Sequence[DesignKernel]
) -> Iterator[tuple[int, DesignEdge, int, tuple[bool, bool]]]:
    """Yield each connection at a configuration: its number, the bytes of a tile, whether its ends are inside."""
    ids = {kernel.id for kernel in inside}
    for number, edge in enumerate(design.edges):
        if edge.source in ids or edge.target in ids:
            yield number, edge, _tile_bytes(design, decision, edge), (edge.source in ids, edge.target in ids)


def _tile_bytes(design: Design, decision: Decision, edge: DesignEdge) -> int:
    rows, _, columns = extents_of(design, decision, _kernel(design, edge.source))
    return 0 if edge.zero_out else rows * columns * design.execution.word_bytes


def sram_of(
    design: Design,
    decision: Decision,
    inside: Sequence[DesignKernel],
    weight_tiles: int,
    compatibility: Compatibility,
    levels: Mapping[int, int],
) -> float:
    """Return the bytes of SRAM of a configuration: two tiles of what crosses its border, what is in flight, weights.

    Args:
        design: with its degrees.
        decision: sharding and tiles of it.
        inside: kernels of the configuration.
        weight_tiles: in which their weights come.
        compatibility: flaws to repeat.
        levels: of kernels by id, see `levels_of`.
    """
    weighted = [kernel.id for kernel in design.kernels if kernel.has_weight]
    sram = 0.0
    for _, edge, _, (starts, ends) in _edges_at(design, decision, inside):
        other = edge
        if compatibility.sram_of_other_edges and edge.source in weighted:  # the edge with the number of its weight
            rank = weighted.index(edge.source)
            other = design.edges[rank] if rank < len(design.edges) else edge
        size = _tile_bytes(design, decision, other)
        if starts != ends:
            sram += 2 * size / (weight_tiles if starts else 1)
        elif starts:
            sram += (levels[other.target] - levels[other.source] + 1) * size
    for kernel in inside:
        rows, k, _ = extents_of(design, decision, kernel)
        is_held = kernel.has_weight and not kernel.skip_weight
        sram += (rows * k * design.execution.word_bytes if is_held else 0) / weight_tiles + kernel.sram_extra_bytes
    return sram


def traffic_of(
    design: Design,
    decision: Decision,
    inside: Sequence[DesignKernel],
    weight_tiles: int,
    compatibility: Compatibility,
) -> dict[int, float]:
    """Return the bytes that each kernel of a configuration reads from DRAM and writes to it, by its id.

    Args:
        design: with its degrees.
        decision: sharding and tiles of it.
        inside: kernels of the configuration.
        weight_tiles: in which their weights come.
        compatibility: flaws to repeat.
    """
    word, micro_batch = design.execution.word_bytes, max(1, design.execution.batch.micro_batch)
    tiles = 1 if any(kernel.num_input for kernel in inside) else decision.tiles
    parts = _weight_parts(design, weight_tiles, len(inside), compatibility)
    traffic = {kernel.id: kernel.memory_bytes for kernel in inside}
    for _, edge, size, (starts, ends) in _edges_at(design, decision, inside):
        if starts != ends:
            traffic[edge.source if starts else edge.target] += tiles * parts * size
    for kernel in inside:
        rows, k, columns = extents_of(design, decision, kernel)
        reads_weight = kernel.has_weight and not kernel.memory_bytes and not kernel.skip_weight
        if reads_weight and not compatibility.weights_not_read:
            cut = _parts(kernel, decision, compatibility, (Dim.OUTER, Dim.M, Dim.K))
            traffic[kernel.id] += rows * k * word * cut / max(1, kernel.num_input) / micro_batch
        if kernel.collective is Collective.ALL_REDUCE_PERIODIC and not compatibility.gradients_not_kept:
            cut = _parts(kernel, decision, compatibility, (Dim.OUTER, Dim.M, Dim.N))
            traffic[kernel.id] += 2 * rows * columns * word * cut / micro_batch
    return traffic


def _check_network(
    design: Design,
    decision: Decision,
    step: StepFigures,
    inside: list[DesignKernel],
    compatibility: Compatibility,
    conversions: Conversions,
    where: str,
) -> None:
    """Check the time of exchange; of networks that no table knows that it is not below that of the narrowest cut."""
    network_ns = network_time_ns(
        design,
        decision.sharding,
        inside,
        lambda kernel: extents_of(design, decision, kernel),
        1 if any(kernel.num_input for kernel in inside) else decision.tiles,
        compatibility,
        conversions,
    )
    if is_known(design.machine.topology, design.machine.links):
        _same(f"{where}: network", step.network_ns, network_ns)
        return
    with topology(design.machine.topology).faults():
        if step.network_ns < network_ns * (1 - RELATIVE):
            raise VerificationError(f"{where}: network: found {step.network_ns} against at least {network_ns}")


def _check_sram(design: Design, step: StepFigures, sram: float, where: str) -> None:
    machine = design.machine
    _same(f"{where}: SRAM", step.sram_bytes, sram)
    is_limited = machine.pmu is None and machine.sram_bytes and design.execution.batch.kind is WorkloadKind.LLM
    if is_limited and sram > machine.sram_bytes * (1 + RELATIVE):
        raise VerificationError(f"{where}: found {sram} bytes of SRAM against {machine.sram_bytes}")


def _weight_parts(design: Design, weight_tiles: int, kernels: int, compatibility: Compatibility) -> int:
    """Return how often what crosses the border of a configuration is moved per tile."""
    parts = 1 if compatibility.streams_read_once else weight_tiles
    multiplies = design.machine.pmu is not None and compatibility.kernels_multiply_traffic
    return parts + kernels - 1 if multiplies else parts


def _parts(kernel: DesignKernel, decision: Decision, compatibility: Compatibility, dims: tuple[Dim, ...]) -> int:
    """Return how many tiles of a tensor with these dimensions make it whole."""
    is_whole = compatibility.weights_of_one_tile or kernel.num_input or kernel.tiling not in dims
    return 1 if is_whole else decision.tiles


def _check_compute(
    design: Design, decision: Decision, step: StepFigures, inside: list[DesignKernel], tiles: int, where: str
) -> None:
    machine, assumed = design.machine, design.execution.compute_utilization
    if assumed > 0:
        flop = 0.0
        for kernel in inside:
            rows, k, columns = extents_of(design, decision, kernel)
            flop += (2 * k if kernel.systolic else 1) * rows * columns
        peak = 2 * machine.lanes_per_core * machine.stages_per_core * machine.cores * machine.frequency_ghz
        _same(f"{where}: compute", step.compute_ns, tiles * flop / (assumed * peak))
        return
    cycles = step.compute_ns * machine.frequency_ghz / tiles
    cores = sum(_fewest_cores(design, decision, kernel, cycles) for kernel in inside)
    if cores > machine.cores:
        raise VerificationError(f"{where}: its time takes {cores} cores against {machine.cores}")
    sooner = cycles * (1 - SOONER) - 1
    if sum(_fewest_cores(design, decision, kernel, sooner) for kernel in inside) <= machine.cores:
        raise VerificationError(f"{where}: found {cycles} cycles of compute, but its cores need less")


def _fewest_cores(design: Design, decision: Decision, kernel: DesignKernel, cycles: float) -> float:
    """Return the fewest cores with which a kernel takes at most so many cycles, for every number of lanes."""
    machine = design.machine
    rows, k, columns = extents_of(design, decision, kernel)
    stage_width = machine.stages_per_core
    if kernel.systolic and kernel.use_effective_stage:
        k, columns, stage_width = columns, k, max(1, design.execution.effective_stage)
    lanes = np.arange(1, min(rows, machine.cores) + 1, dtype=np.int64)
    row_steps = -(-rows // (lanes * machine.lanes_per_core))
    if not kernel.systolic:
        enough = lanes[row_steps * columns <= cycles * (1 + RELATIVE)]
        return float(enough.min(initial=machine.cores + 1))
    column_steps = np.floor(cycles * (1 + RELATIVE) / (row_steps.astype(float) * k)).astype(np.int64)
    stages = -(-columns // (np.maximum(1, column_steps) * stage_width))
    return float((lanes * stages)[column_steps >= 1].min(initial=machine.cores + 1))


def _kernel(design: Design, number: int) -> DesignKernel:
    return next(kernel for kernel in design.kernels if kernel.id == number)


def levels_of(design: Design) -> dict[int, int]:
    """Return the length of the longest path to each kernel, by relaxing all edges until nothing changes."""
    levels = {kernel.id: 0 for kernel in design.kernels}
    changed = True
    while changed:
        changed = False
        for edge in design.edges:
            if levels[edge.target] <= levels[edge.source]:
                levels[edge.target] = levels[edge.source] + 1
                changed = True
    return levels


def _same(what: str, found: float, expected: float) -> None:
    if abs(found - expected) > RELATIVE * max(abs(found), abs(expected)):
        raise VerificationError(f"{what}: found {found} against {expected}")
