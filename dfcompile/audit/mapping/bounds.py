"""The audit of bounds on a mapping: roofs of the machine, what is proved, and what no known algorithm avoids."""

from functools import cache

import numpy as np

from dfcompile.audit.comparing import NEAR_EXACT, ROUNDING, expect, expect_at_least, expect_bound, expect_figures
from dfcompile.audit.expansions import chain_cycles, divided_work
from dfcompile.audit.mapping.times import least_work, words, work_of
from dfcompile.canonical_dag import CanonicalDag, TensorRole
from dfcompile.dfmodel_backend.check.machines import PER_GIGA, PER_S, ChipNetwork, dram_bytes_per_ns, peak_flop_per_s
from dfcompile.dfmodel_backend.check.requirements import combined_ns
from dfcompile.dfmodel_backend.check.task_times import TaskTimes
from dfcompile.dfmodel_backend.machine.system import UNLIMITED_GB_PER_S, System
from dfcompile.errors import VerificationError
from dfcompile.lowering import KnownAlternatives
from dfcompile.report.mapping_figures import MappingSummary, RoofsSummary
from dfcompile.study import Point


def audit_roofs(where: str, summary: RoofsSummary, system: System) -> None:
    """Compute the roofs of one chip anew.

    Args:
        where: path of the part in the report.
        summary: the part.
        system: with the chips in use.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    bandwidth = dram_bytes_per_ns(system)
    dram = None if bandwidth >= UNLIMITED_GB_PER_S else bandwidth * PER_GIGA
    received = ChipNetwork(system.network).received_gb_per_s * PER_GIGA
    expect_figures(where, summary, NEAR_EXACT, flop_per_s=peak_flop_per_s(system), dram_bytes_per_s=dram)
    expect_figures(where, summary, NEAR_EXACT, network_bytes_per_s=received)


def require_part(where: str, part: System, whole: System) -> None:
    """Require that chips in use are some of those at hand, along some dimensions of their network, each as it is.

    Args:
        where: path of the mapping in the report.
        part: with the chips in use.
        whole: with all chips at hand.

    Raises:
        VerificationError: they are others.
    """
    if (part.accelerator, part.dram) != (whole.accelerator, whole.dram):
        raise VerificationError(f"{where}: found chips of {part.name!r} that are not those of {whole.name!r}")
    kinds = whole.network.kind.split("_")
    at_hand = iter(zip(kinds, whole.network.dimensions, strict=False))
    used = zip(part.network.kind.split("_"), part.network.dimensions, strict=False)
    for kind, dimension in used:
        for other, most in at_hand:
            same_link = dimension.link_bandwidth_gb_per_s == most.link_bandwidth_gb_per_s
            if kind == other and same_link and dimension.chips <= most.chips:
                break
        else:
            raise VerificationError(f"{where}: found {dimension.chips} chips along {kind!r} against the machine's")


def audit_bound(where: str, summary: MappingSummary, point: Point, times: TaskTimes) -> None:
    """Compute the bound on the time of a mapping anew, of the cycles that are proved, and hold figures against it.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    attained, dag = point.attained, point.variant.dag
    rounds = 1 if point.micro_batches is None else -(-point.micro_batches.count // point.micro_batches.at_once)
    time_s, moved = rounds * times.time_ns / PER_S, compulsory_bytes(dag)
    bound_s = _bound_s(where, point, times, moved)
    expect_bound(where, summary, time_s, bound_s, is_optimal=time_s <= bound_s * (1 + ROUNDING))
    expect_figures(where, summary, best_chain=attained.is_best_chain)
    expect_at_least(f"{where}.best_chain", summary.best_chain, summary.optimal, "of what is optimal")
    expect_at_least(f"{where}.dram_bytes", summary.dram_bytes, moved, "inputs, weights and results once")


def compulsory_bytes(dag: CanonicalDag) -> int:
    """Return the bytes that any mapping reads from DRAM and writes to it: what is given or asked for, once."""
    task = dag.is_computational
    size, taken = dag.edge_volume * dag.edge_element_bytes, dag.edge_taken * dag.edge_element_bytes
    written, read, largest = np.zeros((3, dag.nodes_count), dtype=np.int64)
    by_task, to_task = task[dag.edge_source], task[dag.edge_target]
    np.add.at(written, dag.edge_target[by_task], size[by_task])
    np.maximum.at(read, dag.edge_source[to_task], taken[to_task])
    np.maximum.at(largest, dag.edge_source[to_task], (dag.edge_distinct * dag.edge_element_bytes)[to_task])
    arrays = {tensor.name: tensor for tensor in dag.tensors}
    total = 0
    for buffer in np.flatnonzero(dag.is_buffer).tolist():
        array = arrays.get(dag.scopes[dag.node_scope[buffer]].origin)
        is_output = array is not None and array.role is TensorRole.OUTPUT
        if written[buffer]:
            total += int(written[buffer]) if is_output or not read[buffer] else 0
        else:
            whole = int(largest[buffer]) if array is None else array.elements * array.element_bytes
            total += min(whole, int(read[buffer]))
    return total


def _bound_s(where: str, point: Point, times: TaskTimes, moved: int) -> float:
    """Return the bound of the cycles that are proved, and of what moves at least."""
    attained, dag, system = point.attained, point.variant.dag, point.system
    if point.chips > 1 and not attained.least_cycles and times.period_ns:
        return attained.bound_time_s  # of the shardings that were tried
    if point.chips > 1:
        cycles = -(-least_work(dag, system) // (system.accelerator.cores * point.chips))
        expect(f"{where}.bound_time_s: cycles", attained.least_cycles, cycles)
    else:
        cycles = attained.least_cycles
        expect_at_least(
            f"{where}: cycles of the schedule", attained.schedule.makespan_cycles, cycles, "cycles of the bound"
        )
        work = work_of(dag, words(dag, system))
        least = max(-(-sum(work.tolist()) // system.accelerator.cores), max(work.tolist(), default=0))
        expect_at_least(f"{where}.bound_time_s: cycles", cycles, least, "work of the tasks")
    memory_ns = moved / dram_bytes_per_ns(system) / point.chips
    overlap = point.mapping.options.overlap
    one_s = combined_ns(overlap, cycles * times.period_ns, memory_ns, 0.0) / PER_S
    if point.micro_batches is None:
        return one_s
    return max(one_s if point.micro_batches.at_once == 1 else 0.0, _bound_of_all_s(point, times, cycles))


def _bound_of_all_s(point: Point, times: TaskTimes, least_cycles: int) -> float:
    """Return what all micro-batches take at least: their work on all elements, and what the whole model moves."""
    attained, system, ran = point.attained, point.attained.system, point.micro_batches
    assert ran is not None
    work = int(work_of(attained.dag, words(attained.dag, system)).sum())
    cycles = -(-ran.count * work // ran.system.accelerator.cores)
    if system.chips > 1:  # of shares that may be smaller on other chips only that all of them together are the whole
        cycles = max(ran.count * (least_cycles - 1) + 1, 0)
    memory_ns = ran.proved_bytes / (dram_bytes_per_ns(ran.system) * system.chips)
    return max(cycles * times.period_ns, memory_ns) / PER_S


class IdealAudit:
    """The audit for one model; what does not depend on the mapping is computed once."""

    def __init__(self, known: KnownAlternatives | None, proved_bytes: int) -> None:
        self._known, self._bytes = known, proved_bytes
        self._work = 0 if known is None else sum(divided_work(known).values())
        self._chain = cache(lambda word: 0 if known is None else chain_cycles(known, word))

    def audit(self, where: str, summary: MappingSummary, point: Point) -> None:
        """Compute the ideal of a mapping anew, and hold its time against it.

        Raises:
            VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
        """
        system, ideal = point.whole_system, summary.ideal
        chip = system.accelerator
        word = chip.lanes_per_core * chip.stages_per_core
        memory_ns = self._bytes / dram_bytes_per_ns(system) / point.chips
        compute_ns = chain_ns = None
        if point.expansion_bound is not None and self._known is not None and not self._known.left_out:
            compute_ns = -(-self._work // (point.chips * chip.cores * word)) / chip.frequency_ghz
            chain_ns = None if point.chips > 1 else self._chain(word) / chip.frequency_ghz
        terms = {"compute": compute_ns, "memory": memory_ns, "chain": chain_ns}
        in_s = {f"{name}_s": None if term is None else term / PER_S for name, term in terms.items()}
        expect_figures(f"{where}.ideal", ideal, ROUNDING, **in_s)
        longest = max(term or 0.0 for term in terms.values())
        if (terms.get(ideal.bound_by) or 0.0) < longest * (1 - ROUNDING):
            raise VerificationError(f"{where}.ideal.bound_by: found {ideal.bound_by!r} against the longest of {terms}")
        time_ns = combined_ns(point.mapping.options.overlap, max(compute_ns or 0.0, chain_ns or 0.0), memory_ns, 0.0)
        expect(f"{where}.ideal_time_s", summary.ideal_time_s, time_ns / PER_S, ROUNDING)
        expect_at_least(f"{where}.time_s", summary.time_s, summary.ideal_time_s, "ideal_time_s", ROUNDING)
