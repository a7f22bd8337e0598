"""The ideal of a mapping: a time that no known algorithm beats on the machine."""

from msgspec import Struct

from dfcompile import dfmodel_backend as backend
from dfcompile.driver import Point
from dfcompile.lowering import KnownAlternatives
from dfcompile.lowering.alternatives.chain import longest_chain
from dfcompile.report.figures import AssumptionSummary
from dfcompile.report.filled import NS_PER_S

TRAFFIC_ALONE = AssumptionSummary(
    "ideal",
    "least traffic alone: the work and the chains of all expansions are not known",
    "--passes, --volumes, --granularity, or an expansion that failed",
)


class Ideal(Struct, frozen=True):
    """The terms of an ideal.

    Attributes:
        compute_s: least work of all operators, shared by all processing elements; ``None``: not known.
        memory_s: what moves at least, at the bandwidth of all chips.
        chain_s: longest chain of dependent work; ``None``: not known, as on several chips, whose shares may be without
            what follows from constants.
        overlap: of compute and memory.
    """

    compute_s: float | None
    memory_s: float
    chain_s: float | None
    overlap: backend.Overlap

    @property
    def is_known(self) -> bool:
        """Whether it is known what expansions give."""
        return self.compute_s is not None

    @property
    def time_s(self) -> float:
        """The terms joined: work and chain are both of the processing elements, so the longer one counts."""
        return self.overlap.time_ns(max(self.compute_s or 0.0, self.chain_s or 0.0), self.memory_s, 0.0)

    @property
    def bound_by(self) -> str:
        """The largest of the terms."""
        terms = {"compute": self.compute_s, "memory": self.memory_s, "chain": self.chain_s}
        return max(terms, key=lambda name: terms[name] or 0.0)


class Ideals:
    """The ideals of a model, on any machine."""

    def __init__(self, alternatives: KnownAlternatives | None, proved_bytes: int) -> None:
        """Take what the known expansions make of the model, if it is known, and the bytes that every one of them moves.

        An expansion of a third party that failed may do with less: then nothing is known but the bytes.
        """
        self._alternatives = None if alternatives is None or alternatives.left_out else alternatives
        self._proved_bytes = proved_bytes
        self._chains: dict[int, int] = {}

    def of(self, point: Point) -> Ideal:
        """Return the ideal on all chips at hand."""
        chip, chips = point.system.accelerator, point.chips
        memory_s = self._proved_bytes / (point.system.dram_gb_per_s * chips * NS_PER_S)
        period_s = 1 / (chip.frequency_ghz * NS_PER_S)
        work, known = point.least_work, self._alternatives
        if work is None or known is None:
            return Ideal(None, memory_s, None, point.mapping.options.overlap)
        word = chip.lanes_per_core * chip.stages_per_core
        cycles = -(-sum(work.values()) // (word * chip.cores * chips))
        return Ideal(
            cycles * period_s,
            memory_s,
            None if chips > 1 else self._chain(known, word) * period_s,
            point.mapping.options.overlap,
        )

    def _chain(self, known: KnownAlternatives, word: int) -> int:
        if word not in self._chains:
            self._chains[word] = longest_chain(known, word)
        return self._chains[word]
