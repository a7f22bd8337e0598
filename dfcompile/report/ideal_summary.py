"""The ideal of a mapping: a time that no known algorithm beats on the machine."""

from functools import cache, partial

from dfcompile.driver import Point
from dfcompile.lowering import KnownAlternatives
from dfcompile.lowering.alternatives.chain import longest_chain
from dfcompile.report.figures import AssumptionSummary
from dfcompile.report.filled import NS_PER_S
from dfcompile.report.mapping_figures import IdealSummary

TRAFFIC_ALONE = AssumptionSummary(
    "ideal",
    "least traffic alone: the work and the chains of all expansions are not known",
    "--passes, --volumes, --granularity, or an expansion that failed",
)


class Ideals:
    """The ideals of a model, on any machine."""

    def __init__(self, alternatives: KnownAlternatives | None, proved_bytes: int) -> None:
        """Take what the known expansions make of the model, if it is known, and the bytes that every one of them moves.

        An expansion of a third party that failed may do with less: then nothing is known but the bytes.
        """
        known = None if alternatives is None or alternatives.left_out else alternatives
        self._chain = None if known is None else cache(partial(longest_chain, known))
        self._proved_bytes = proved_bytes

    def of(self, point: Point) -> tuple[IdealSummary, float]:
        """Return the terms of the ideal on all chips at hand, and its time in seconds.

        On several chips no chain is known: their shares may be without what follows from constants.
        """
        chip, chips = point.system.accelerator, point.chips
        memory_s = self._proved_bytes / (point.system.dram_gb_per_s * chips * NS_PER_S)
        period_s = 1 / (chip.frequency_ghz * NS_PER_S)
        compute_s = chain_s = None
        if point.least_work is not None and self._chain is not None:
            word = chip.lanes_per_core * chip.stages_per_core
            compute_s = -(-sum(point.least_work.values()) // (word * chip.cores * chips)) * period_s
            chain_s = None if chips > 1 else self._chain(word) * period_s
        terms = {"compute": compute_s, "memory": memory_s, "chain": chain_s}
        bound_by = max(terms, key=lambda name: terms[name] or 0.0)
        # Work and chain are both of the processing elements, so the longer one counts.
        at_work_s = max(compute_s or 0.0, chain_s or 0.0)
        time_s = point.mapping.options.overlap.time_ns(at_work_s, memory_s, 0.0)
        return IdealSummary(bound_by, compute_s, memory_s, chain_s), time_s
