"""The audit of the ideal of a mapping: what no known algorithm avoids, computed anew; no time is below it."""

from functools import cache

from dfcompile.audit.alternatives import chain_cycles, divided_work
from dfcompile.audit.comparing import ROUNDING, expect, expect_at_least
from dfcompile.audit.machine import dram_bytes_per_ns
from dfcompile.audit.mapping.times import PER_S, joined_ns
from dfcompile.driver import Point
from dfcompile.errors import VerificationError
from dfcompile.lowering import KnownAlternatives
from dfcompile.report.mapping_figures import MappingSummary


class IdealAudit:
    """The audit for one model; what does not depend on the mapping is computed once."""

    def __init__(self, known: KnownAlternatives | None, proved_bytes: int) -> None:
        self._known = known
        self._bytes = proved_bytes
        self._work = 0 if known is None else sum(divided_work(known).values())
        self._chain = cache(lambda word: 0 if known is None else chain_cycles(known, word))

    def audit(self, where: str, summary: MappingSummary, point: Point) -> None:
        """Compute the ideal of a mapping anew, and hold its time against it.

        Raises:
            VerificationError: naming the figure, as found and as recomputed, or the bound that it is below.
        """
        chip, ideal = point.system.accelerator, summary.ideal
        word = chip.lanes_per_core * chip.stages_per_core
        memory_ns = self._bytes / dram_bytes_per_ns(point.system) / point.chips
        compute_ns = chain_ns = None
        if point.expansion_bound is not None and self._known is not None and not self._known.left_out:
            compute_ns = -(-self._work // (point.chips * chip.cores * word)) / chip.frequency_ghz
            chain_ns = None if point.chips > 1 else self._chain(word) / chip.frequency_ghz
        terms = {"compute": compute_ns, "memory": memory_ns, "chain": chain_ns}
        for name, found in (("compute", ideal.compute_s), ("memory", ideal.memory_s), ("chain", ideal.chain_s)):
            term = terms[name]
            expect(f"{where}.ideal.{name}_s", found, None if term is None else term / PER_S, ROUNDING)
        longest = max(term or 0.0 for term in terms.values())
        if (terms.get(ideal.bound_by) or 0.0) < longest * (1 - ROUNDING):
            raise VerificationError(f"{where}.ideal.bound_by: found {ideal.bound_by!r} against the longest of {terms}")
        time_ns = joined_ns(point.mapping.options.overlap, max(compute_ns or 0.0, chain_ns or 0.0), memory_ns, 0.0)
        expect(f"{where}.ideal_time_s", summary.ideal_time_s, time_ns / PER_S, ROUNDING)
        expect_at_least(f"{where}.time_s", summary.time_s, summary.ideal_time_s, "ideal_time_s", ROUNDING)
