"""The audit of what each kernel of a mapping does: operations, bytes and times, task by task."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dfcompile.audit.comparing import ROUNDING, expect, expect_at_least, expect_figures
from dfcompile.audit.machine import dram_bytes_per_ns
from dfcompile.audit.mapping.times import NOBODY, PER_S, TaskTimes, audit_time
from dfcompile.canonical_dag import CanonicalDag, Kernel, TensorRole
from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.errors import VerificationError
from dfcompile.report.mapping_figures import KernelGroupSummary


def audit_kernels(where: str, summaries: Sequence[KernelGroupSummary], times: TaskTimes) -> None:
    """Compute the figures of kernels anew.

    Raises:
        VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
    """
    figures = _Kernels(times)
    named = [name for summary in summaries for name in summary.kernels]
    if sorted(named) != sorted(times.names):
        raise VerificationError(f"{where}: found {len(named)} kernels against the {len(times.names)} with tasks")
    moved = [0] * len(times.attained.configurations)
    for number, summary in enumerate(summaries):
        at = f"{where}[{number}]"
        expect(f"{at}.count", summary.count, len(summary.kernels))
        for name in summary.kernels:
            figures.audit(at, summary, name)
            moved[times.place[name]] += summary.dram_bytes
    for number, (found, expected) in enumerate(zip(moved, times.dram_bytes, strict=True)):
        expect(f"{where}: dram_bytes of those in configuration {number}", found, expected)


class _Kernels:
    """Figures of the kernels of a mapping, by name."""

    def __init__(self, times: TaskTimes) -> None:
        self._times = times
        dag = times.attained.dag
        self._kernels = {kernel.name: kernel for kernel in dag.kernels}
        self._number = {name: number for number, name in enumerate(times.names)}
        real: Bool = dag.is_computational | dag.is_buffer
        self._edges = np.flatnonzero(real[dag.edge_source] & real[dag.edge_target])
        self._bytes: Int64 = dag.edge_volume * dag.edge_element_bytes
        self._chip_bytes = self._summed(self._bytes[self._edges])
        self._cycles = self._lasting()
        # Bytes of DRAM in proportion to what each kernel reads, and writes, of each store; and how often they were
        # rounded to whole bytes: of stores that it shares with others.
        self._dram, self._rounded = self._dram_shares()
        self._network_ns = dict.fromkeys(times.names, 0.0)
        self._received = dict.fromkeys(times.names, 0)
        for exchange, found in zip(times.attained.exchanges, times.exchanged, strict=True):
            self._network_ns[exchange.source] += found.time_ns
            self._received[exchange.source] += found.moved_bytes

    def audit(self, where: str, summary: KernelGroupSummary, name: str) -> None:
        """Hold the figures of a group against those of one of its kernels."""
        times, number = self._times, self._number[name]
        kernel, moved = self._kernels.get(name), self._dram.get(name, Fraction(0))
        where = f"{where} ({name})"
        compute_ns = self._cycles[number] * times.period_ns
        memory_ns = summary.dram_bytes / dram_bytes_per_ns(times.attained.system)
        parts = compute_ns, memory_ns, self._network_ns[name]
        op, flop = ("", 0) if kernel is None else (kernel.op, _kernel_flop(kernel))
        expect_figures(where, summary, op=op, flop=flop, chip_bytes=self._chip_bytes[number])
        if abs(summary.dram_bytes - moved) > self._rounded[name]:
            raise VerificationError(
                f"{where}.dram_bytes: found {summary.dram_bytes} against {float(moved):g} recomputed"
            )
        expect_figures(where, summary, ROUNDING, network_bytes=self._received[name] / times.attained.chips)
        audit_time(where, summary, times.overlap, *parts)
        longest_s = times.times_ns[times.place[name]] / PER_S
        expect_at_least(f"{where}: its configuration's time", longest_s, summary.time_s, "time_s", ROUNDING)

    def _summed(self, size: Int64) -> list[int]:
        """Return the sum over the edges at the tasks of each kernel, edges between two of its tasks twice."""
        dag, kernel = self._times.attained.dag, self._times.kernel
        sums = np.zeros(len(self._number), dtype=np.int64)
        for ends in (dag.edge_source, dag.edge_target):
            own = kernel[ends[self._edges]]
            np.add.at(sums, own[own != NOBODY], size[own != NOBODY])
        return sums.tolist()

    def _lasting(self) -> list[int]:
        """Return the cycles from the first start to the last end of the tasks of each kernel."""
        tasks = np.flatnonzero(self._times.kernel != NOBODY)
        schedule, own = self._times.attained.schedule, self._times.kernel[tasks]
        start, end = np.full(len(self._number), schedule.makespan_cycles), np.zeros(len(self._number), dtype=np.int64)
        np.minimum.at(start, own, schedule.start[tasks])
        np.maximum.at(end, own, schedule.last_out[tasks])
        return [int(cycles) for cycles in end - start]

    def _dram_shares(self) -> tuple[dict[str, Fraction], Counter[str]]:
        configurations = self._times.attained.configurations
        stores = [{store.name: store for store in one.stores} for one in configurations]
        exact: dict[str, Fraction] = {}
        rounded = Counter[str]()
        for is_read in (True, False):
            for (number, store), parts in self._through_memory(is_read=is_read).items():
                use = stores[number][store]
                total = use.dram_read_bytes if is_read else use.dram_write_bytes
                everything = sum(parts.values())
                for name, part in parts.items():
                    exact[name] = exact.get(name, Fraction(0)) + Fraction(total * part, everything)
                    rounded[name] += len(parts) > 1
        return exact, rounded

    def _through_memory(self, *, is_read: bool) -> dict[tuple[int, str], dict[str, int]]:
        """Return the bytes of each kernel that are read or written, by configuration and store."""
        times, dag = self._times, self._times.attained.dag
        edges = self._edges[~times.attained.schedule.streamed[self._edges]]
        edges = edges[times.kernel[(dag.edge_target if is_read else dag.edge_source)[edges]] != NOBODY]
        source, target = dag.edge_source[edges].astype(np.int64), dag.edge_target[edges].astype(np.int64)
        own = target if is_read else source
        of_scope = -1 - dag.node_scope[source].astype(np.int64)
        store = np.where(dag.is_buffer[source], source, np.where(dag.is_buffer[target], target, of_scope))
        columns = (times.configuration[own], store, times.kernel[own])
        sums = Counter[tuple[int, int, int]]()
        for *key, size in zip(*(each.tolist() for each in columns), self._bytes[edges].tolist(), strict=True):
            sums[key[0], key[1], key[2]] += size
        found: dict[tuple[int, str], dict[str, int]] = {}
        for (number, place, kernel), size in sums.items():
            name = dag.node_name(place) if place >= 0 else dag.scopes[-1 - place].name
            found.setdefault((number, name), {})[times.names[kernel]] = size
        return found


def _kernel_flop(kernel: Kernel) -> int:
    """Return the operations of a kernel: two per term of each sum of a contraction, else one per element."""
    elements = math.prod((kernel.outer, kernel.m, kernel.n))
    return 2 * kernel.k * elements if kernel.variant.is_gemm else elements


def _prepared_kernels(dag: CanonicalDag) -> set[str]:
    """Return the names of kernels that depend on parameters alone: they run when weights are loaded."""
    constant = {tensor.name for tensor in dag.tensors if tensor.role is TensorRole.PARAMETER}
    makers: dict[str, list[Kernel]] = {}
    for kernel in dag.kernels:
        for name in kernel.outputs:
            makers.setdefault(name, []).append(kernel)
    prepared: set[str] = set()
    open_kernels = list(dag.kernels)
    while True:
        found = [kernel for kernel in open_kernels if constant.issuperset(kernel.inputs)]
        if not found:
            return prepared
        prepared.update(kernel.name for kernel in found)
        open_kernels = [kernel for kernel in open_kernels if kernel.name not in prepared]
        for kernel in found:
            constant.update(name for name in kernel.outputs if all(one.name in prepared for one in makers[name]))


def model_flop(dag: CanonicalDag) -> int:
    """Return the operations of a model, each once, however many chips repeat them."""
    prepared = _prepared_kernels(dag)
    return sum(_kernel_flop(kernel) for kernel in dag.kernels if kernel.name not in prepared)
