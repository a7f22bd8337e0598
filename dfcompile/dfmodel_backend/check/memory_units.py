"""Checks cores and memory units (PMUs) of a configuration from the definitions [ko24, section 4]."""

import math

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.check.decided_design import DecidedDesign
from dfcompile.dfmodel_backend.evaluate.designs import StepFigures
from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit, cycles_of
from dfcompile.dfmodel_backend.machine.machine import LaneStage
from dfcompile.dfmodel_backend.workload.design import DesignKernel
from dfcompile.dfmodel_backend.workload.kernel_work import KernelWork
from dfcompile.errors import VerificationError

RELATIVE = 1e-9
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
        work = KernelWork(kernel.name, kernel.systolic, rows, steps, columns)
        slowest = max(slowest, cycles_of(work, split, machine.lanes_per_core, stages))
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
