"""Checks a solved design and its placements from first principles; shares no formula with evaluator or solvers."""

import math
from collections import Counter
from functools import partial

import numpy as np

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.check.collectives import is_known
from dfcompile.dfmodel_backend.check.decided_design import DecidedDesign
from dfcompile.dfmodel_backend.check.requirements import require_close
from dfcompile.dfmodel_backend.check.steps import Step, network_ns, steps_of
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.evaluate.designs import Decision, DesignFigures, StepFigures
from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit
from dfcompile.dfmodel_backend.intra_chip.memory_units import Allocation
from dfcompile.dfmodel_backend.machine.network.topologies import topology
from dfcompile.dfmodel_backend.machine.system import LaneStage, PmuGrid
from dfcompile.dfmodel_backend.placement import PlacedConfiguration, PlacedUnits, Role
from dfcompile.dfmodel_backend.workload.design import Design, DesignKernel, WorkloadKind
from dfcompile.errors import VerificationError

RELATIVE = 1e-9
_same = partial(require_close, relative=RELATIVE)
SOONER = 1e-6  # relative; a slowest kernel that could be faster by so much, and a cycle, is no best split of cores


def check_design(design: Design, decision: Decision, figures: DesignFigures, compatibility: Compatibility) -> None:
    """Check a decision: every kernel placed, edges forward, limits kept; and compute, DRAM traffic, SRAM and times.

    Raises:
        VerificationError: naming the configuration or the kernel, found against expected.
    """
    _check_places(design, decision)
    decided = DecidedDesign(design, decision, compatibility)
    steps = steps_of(decided, figures.steps)
    for number, (found, step) in enumerate(zip(figures.steps, steps, strict=True)):
        where = f"configuration {number}"
        _same(f"{where}: kernels", float(len(step.kernels)), float(len(found.kernels)))
        if step.kernels:
            _check_network(decided, found, step, f"{where}: network")
            _check_step(decided, found, step, where)
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


def _check_network(decided: DecidedDesign, found: StepFigures, step: Step, where: str) -> None:
    """Check the time of exchange; of networks that no table knows that it is not below that of the narrowest cut."""
    machine = decided.design.machine
    if is_known(machine.topology, machine.links):
        _same(where, found.network_ns, step.network_ns)
        return
    least_ns = network_ns(decided, step.kernels)
    with topology(machine.topology).faults():
        if found.network_ns < least_ns * (1 - RELATIVE):
            raise VerificationError(f"{where}: found {found.network_ns} against at least {least_ns}")


def _check_step(decided: DecidedDesign, found: StepFigures, step: Step, where: str) -> None:
    machine = decided.design.machine
    _same(f"{where}: SRAM", found.sram_bytes, step.sram_bytes)
    is_language_model = decided.design.execution.batch.kind is WorkloadKind.LLM
    is_limited = machine.pmu is None and machine.sram_bytes and is_language_model
    if is_limited and step.sram_bytes > machine.sram_bytes * (1 + RELATIVE):
        raise VerificationError(f"{where}: found {step.sram_bytes} bytes of SRAM against {machine.sram_bytes}")
    if found.weight_tiles > 1 and len(step.kernels) > 1:
        raise VerificationError(f"{where}: weights in tiles, but {len(step.kernels)} kernels against one")
    _same(f"{where}: DRAM traffic", found.dram_bytes, step.dram_bytes)
    _same(f"{where}: memory", found.memory_ns, step.memory_ns)
    if machine.pmu is None:
        _check_compute(decided, found, step, where)
    else:
        check_units(decided, found, where)
    _same(f"{where}: time", found.time_ns, step.time_ns)


def _check_compute(decided: DecidedDesign, found: StepFigures, step: Step, where: str) -> None:
    machine, assumed = decided.design.machine, decided.design.execution.compute_utilization
    if assumed > 0:
        flop = 0.0
        for kernel in step.kernels:
            rows, k, columns = decided.extents(kernel)
            flop += (2 * k if kernel.systolic else 1) * rows * columns
        peak = 2 * machine.lanes_per_core * machine.stages_per_core * machine.cores * machine.frequency_ghz
        _same(f"{where}: compute", found.compute_ns, step.tiles * flop / (assumed * peak))
        return
    cycles = found.compute_ns * machine.frequency_ghz / step.tiles
    cores = sum(_fewest_cores(decided, kernel, cycles) for kernel in step.kernels)
    if cores > machine.cores:
        raise VerificationError(f"{where}: its time takes {cores} cores against {machine.cores}")
    sooner = cycles * (1 - SOONER) - 1
    if sum(_fewest_cores(decided, kernel, sooner) for kernel in step.kernels) <= machine.cores:
        raise VerificationError(f"{where}: found {cycles} cycles of compute, but its cores need less")


def _fewest_cores(decided: DecidedDesign, kernel: DesignKernel, cycles: float) -> float:
    """Return the fewest cores with which a kernel takes at most so many cycles, for every number of lanes."""
    machine = decided.design.machine
    rows, steps, columns, stage_width = decided.core_work(kernel)
    lanes = np.arange(1, min(rows, machine.cores) + 1, dtype=np.int64)
    row_steps = -(-rows // (lanes * machine.lanes_per_core))
    if not kernel.systolic:
        return float(lanes[row_steps * columns <= cycles * (1 + RELATIVE)].min(initial=machine.cores + 1))
    column_steps = np.floor(cycles * (1 + RELATIVE) / (row_steps.astype(float) * steps)).astype(np.int64)
    stages = -(-columns // (np.maximum(1, column_steps) * stage_width))
    return float((lanes * stages)[column_steps >= 1].min(initial=machine.cores + 1))


Splits = dict[int, CoreSplit]  # by kernel id


def check_units(decided: DecidedDesign, step: StepFigures, where: str) -> None:
    """Check that splits take the time stated, tensors have the PMUs they need, and both are there.

    Raises:
        VerificationError: naming the configuration, kernel or connection, found against expected.
    """
    machine, kernels, units = decided.design.machine, decided.design.kernels, step.units
    if machine.pmu is None or units is None:
        raise VerificationError(f"{where}: found no units against cores and PMUs of each kernel")
    if [kernels[position].name for position in units.splits] != list(step.kernels):
        raise VerificationError(f"{where}: found splits of other kernels than its own")
    splits = {kernels[position].id: split for position, split in units.splits.items()}
    _check_cycles(decided, step, splits, where)
    for number, limit in _edge_limits(decided, step, splits, machine.pmu.pmu_bytes).items():
        _at_least(f"{where}: connection {number}", units.edges.get(number, 0), limit)
    room, flaws = machine.pmu.pmu_bytes, decided.compatibility
    for position, split in units.splits.items():
        kernel = kernels[position]
        if kernel.has_weight and (flaws.skipped_weights_take_pmus or not kernel.skip_weight):
            limit = max(math.ceil(decided.weight_bytes(kernel) / step.weight_tiles / room), split.lanes)
            _at_least(f"{where}: weights of kernel {kernel.name!r}", units.weights.get(position, 0), limit)
        if not flaws.sram_extra_takes_no_pmus:
            limit = math.ceil(kernel.sram_extra_bytes / room)
            _at_least(f"{where}: added to kernel {kernel.name!r}", units.extras.get(position, 0), limit)
    cores = sum(split.lanes * split.stages for split in splits.values())
    if cores > machine.cores or units.pmus > machine.pmu.pmus:
        raise VerificationError(
            f"{where}: found {cores} cores and {units.pmus} PMUs against {machine.cores} and {machine.pmu.pmus}"
        )


def _check_cycles(decided: DecidedDesign, step: StepFigures, splits: Splits, where: str) -> None:
    machine = decided.design.machine
    slowest = 0
    for number, split in splits.items():
        kernel = decided.kernels[number]
        rows, steps, columns, stages = decided.core_work(kernel)
        of_row = steps * -(-columns // (split.stages * stages)) if kernel.systolic else columns
        slowest = max(slowest, -(-rows // (split.lanes * machine.lanes_per_core)) * of_row)
    tiles = decided.tiles_of([decided.kernels[number] for number in splits])
    expected = slowest * tiles / machine.frequency_ghz
    if abs(step.compute_ns - expected) > RELATIVE * expected:
        raise VerificationError(f"{where}: compute: found {step.compute_ns} ns against {expected} of its splits")


def _edge_limits(decided: DecidedDesign, step: StepFigures, splits: Splits, room: float) -> dict[int, int]:
    """Return the fewest PMUs of each connection, by its number, that touches the configuration."""
    machine, levels = decided.design.machine, decided.levels
    first: dict[int, int] = {}
    found: dict[int, int] = {}
    for number, edge in enumerate(decided.design.edges):
        first.setdefault(edge.target, number)
        writer, reader = splits.get(edge.source), splits.get(edge.target)
        if writer is None and reader is None:
            continue
        source, target = decided.kernels[edge.source], decided.kernels[edge.target]
        # The flaw that takes sizes from other edges is not repeated here: limits of size are then not checked.
        size = 0 if decided.compatibility.sram_of_other_edges else decided.edge_bytes(edge)
        tiles = levels[edge.target] - levels[edge.source] + 1 if writer and reader else 2
        shared = step.weight_tiles if writer and not reader else 1
        limits = [math.ceil(tiles * size / shared / room)]
        if writer is not None:
            blocks, (_, k, _) = writer.lanes * writer.stages * machine.stages_per_core, decided.extents(source)
            limits.append(math.ceil(blocks / k) if source.variant.is_gemm else writer.lanes)
        if reader is not None:
            label = edge.label or _label(target, is_first=first[edge.target] == number)
            wide = math.ceil(reader.stages * machine.stages_per_core / machine.lanes_per_core)
            limits.append({LaneStage.LANE: reader.lanes, LaneStage.STAGE: wide}[label])
        found[number] = max(limits)
    return found


def _label(kernel: DesignKernel, *, is_first: bool) -> LaneStage:
    on_stages = {
        KernelVariant.GEMM_INPUT1_WEIGHT: True,
        KernelVariant.GEMM_INPUT1_INPUT2: not is_first,
        KernelVariant.ELEMENTWISE_INPUT1: False,
        KernelVariant.ELEMENTWISE_INPUT1_INPUT2: False,
    }[kernel.variant]
    return LaneStage.STAGE if on_stages else LaneStage.LANE


def _at_least(what: str, found: int, needed: int) -> None:
    if found < needed:
        raise VerificationError(f"{what}: found {found} PMUs against {needed}")


def check_placements(design: Design, figures: DesignFigures, placed: tuple[PlacedConfiguration, ...]) -> None:
    """Check the placement of each configuration of a design.

    Raises:
        VerificationError: naming the configuration and the unit, found against expected.
    """
    grid = design.machine.pmu
    if not placed or grid is None:
        return
    expected = [number for number, step in enumerate(figures.steps) if step.units is not None]
    if [one.configuration for one in placed] != expected:
        raise VerificationError(f"placement: found other configurations than {expected}")
    position = {kernel.id: number for number, kernel in enumerate(design.kernels)}
    ends = tuple((position[edge.source], position[edge.target]) for edge in design.edges)
    for one in placed:
        units = figures.steps[one.configuration].units
        assert units is not None
        where = f"placement of configuration {one.configuration}"
        check_units_placed(grid, ends, units, one.units, where)
        _check_links(ends, one, where)


def check_units_placed(
    grid: PmuGrid, ends: tuple[tuple[int, int], ...], units: Allocation, placed: PlacedUnits, where: str
) -> None:
    """Check that all units of a configuration, and no others, have one cell each, and that wires join them all.

    Raises:
        VerificationError: as `check_placements`.
    """
    kernels = {kernel.kernel: (kernel.split, len(kernel.cells)) for kernel in placed.kernels}
    if kernels != {kernel: (split, split.lanes * split.stages) for kernel, split in units.splits.items()}:
        raise VerificationError(f"{where}: PCUs: found other kernels, splits or counts than the configuration's")
    found = {(tensor.role, tensor.number): len(tensor.cells) for tensor in placed.tensors}
    expected = {
        (role, number): count
        for role, counts in ((Role.TENSOR, units.edges), (Role.WEIGHTS, units.weights), (Role.ADDED, units.extras))
        for number, count in counts.items()
        if count
    }
    if found != expected or len(kernels) != len(placed.kernels) or len(found) != len(placed.tensors):
        raise VerificationError(f"{where}: PMUs: found other tensors or counts than the configuration's")
    cells = [(cell, True) for kernel in placed.kernels for cell in kernel.cells]
    cells += [(cell, False) for tensor in placed.tensors for cell in tensor.cells]
    for cell, is_pcu in cells:
        if not (0 <= cell.x < grid.x and 0 <= cell.y < grid.y) or (cell.x + cell.y) % 2 != is_pcu:
            raise VerificationError(
                f"{where}: found a {'PCU' if is_pcu else 'PMU'} at {cell.x}, {cell.y} against a cell of its kind"
            )
    for cell, count in Counter(cell for cell, _ in cells).items():
        if count > 1:
            raise VerificationError(f"{where}: found {count} units at {cell.x}, {cell.y} against 1")
    _check_wires(ends, placed, where)


def _check_wires(ends: tuple[tuple[int, int], ...], placed: PlacedUnits, where: str) -> None:
    inside = {kernel.kernel for kernel in placed.kernels}
    expected: Counter[tuple[int, int, bool]] = Counter()
    for number, tensor in enumerate(placed.tensors):
        writer, reader = ends[tensor.number] if tensor.role is Role.TENSOR else (-1, tensor.number)
        expected.update((number, end, is_write) for end, is_write in ((writer, True), (reader, False)) if end in inside)
    found = Counter((wires.tensor, placed.kernels[wires.kernel].kernel, wires.is_write) for wires in placed.wires)
    if found != expected:
        raise VerificationError(f"{where}: wires: found other tensors and kernels than those that touch")
    for wires in placed.wires:
        pmus, pcus = set(placed.tensors[wires.tensor].cells), set(placed.kernels[wires.kernel].cells)
        split = placed.kernels[wires.kernel].split
        wired = {pcu for _, pcu in wires.pairs}
        if {pmu for pmu, _ in wires.pairs} != pmus or not wired <= pcus:
            raise VerificationError(f"{where}: wires of tensor {wires.tensor}: found other units than all of its own")
        if len(wired) not in (split.lanes, split.stages):
            raise VerificationError(
                f"{where}: wires of tensor {wires.tensor}: found {len(wired)} PCUs against "
                f"{split.lanes} lanes or {split.stages} stages"
            )


def _check_links(ends: tuple[tuple[int, int], ...], placed: PlacedConfiguration, where: str) -> None:
    """Check that each tensor that crosses the border of the configuration has links for each of its PMUs."""
    inside = {kernel.kernel for kernel in placed.units.kernels}
    linked: dict[tuple[int, bool], list[tuple[int, int]]] = {}
    for link in placed.links:
        if link.tensor is not None:
            linked.setdefault((link.tensor, link.is_incoming), []).extend(link.cells)
    for number, tensor in enumerate(placed.units.tensors):
        if tensor.role is Role.ADDED:
            continue
        writer, reader = ends[tensor.number] if tensor.role is Role.TENSOR else (-1, tensor.number)
        if writer in inside and reader in inside:
            continue
        is_incoming = reader in inside
        if not set(tensor.cells) <= set(linked.get((number, is_incoming), [])):
            way = "in" if is_incoming else "out"
            raise VerificationError(f"{where}: tensor {number}: found PMUs without a link {way} against one for each")
