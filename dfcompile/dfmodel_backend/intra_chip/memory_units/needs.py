"""How many memory units (PMUs) a tensor takes: lower limits by size and by the cores at its ends [ko24, section 4]."""

import math
from typing import assert_never

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.inter_chip.shares import Share
from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit
from dfcompile.dfmodel_backend.machine.machine import LaneStage, PmuGrid
from dfcompile.dfmodel_backend.workload.design import Design


def labels_of(design: Design) -> tuple[LaneStage, ...]:
    """Return how the reader of each edge spreads it over its cores; the design may say so itself.

    The input of a product with a weight goes to stages; of a product of two inputs the first one goes to lanes, the
    second one to stages; inputs of elementwise kernels go to lanes [ko24].
    """
    variants = {kernel.id: kernel.variant for kernel in design.kernels}
    served: dict[int, None] = {}
    labels = []
    for edge in design.edges:
        label = _label(variants[edge.target], is_first=edge.target not in served)
        served[edge.target] = None
        labels.append(edge.label or label)
    return tuple(labels)


def _label(variant: KernelVariant, *, is_first: bool) -> LaneStage:
    """Return how a kernel spreads the tensor that comes in over its first connection, or over another one."""
    match variant:
        case KernelVariant.GEMM_INPUT1_WEIGHT:
            return LaneStage.STAGE
        case KernelVariant.GEMM_INPUT1_INPUT2:
            return LaneStage.LANE if is_first else LaneStage.STAGE
        case KernelVariant.ELEMENTWISE_INPUT1 | KernelVariant.ELEMENTWISE_INPUT1_INPUT2:
            return LaneStage.LANE
    assert_never(variant)


class PmuNeeds:
    """Lower limits of the PMUs of each tensor; kernels and edges are numbered by position.

    A tensor takes the largest of its limits. Of its two ends only those in the configuration count.
    """

    def __init__(
        self,
        design: Design,
        grid: PmuGrid,
        shares: tuple[Share, ...],
        sizes: tuple[Column, Column],
        compatibility: Compatibility,
    ) -> None:
        self.labels = labels_of(design)
        self._machine = design.machine
        self._shares = shares
        self._unit = grid.pmu_bytes
        self._size, self._depth = ([float(value) for value in column] for column in sizes)
        self._counts_skipped = compatibility.skipped_weights_take_pmus
        self._counts_extra = not compatibility.sram_extra_takes_no_pmus

    def crossing(self, edge: int, parts: int = 1) -> int:
        """Return the PMUs for two tiles of a tensor between the chip and DRAM, of which a part is there at a time."""
        return math.ceil(2 * self._size[edge] / (parts * self._unit))

    def inside(self, edge: int) -> int:
        """Return the PMUs for as many tiles of a tensor as are in flight between two kernels on the chip."""
        return math.ceil(self._depth[edge] * self._size[edge] / self._unit)

    def has_weight(self, kernel: int) -> bool:
        """Return whether a kernel holds weights in PMUs."""
        own = self._shares[kernel].kernel
        return own.has_weight and (self._counts_skipped or not own.skip_weight)

    def weight(self, kernel: int, parts: int = 1) -> int:
        """Return the PMUs for a part of the weights of a kernel; 0 if it holds none."""
        if not self.has_weight(kernel):
            return 0
        return math.ceil(self._shares[kernel].weight_bytes / (parts * self._unit))

    def added(self, kernel: int) -> int:
        """Return the PMUs for what the design adds to the SRAM of a kernel's configuration."""
        return math.ceil(self._shares[kernel].kernel.sram_extra_bytes / self._unit) if self._counts_extra else 0

    def loaded(self, kernel: int, split: CoreSplit) -> int:
        """Return the PMUs from which the cores of a kernel can load its weights: one per lane."""
        return split.lanes if self.has_weight(kernel) else 0

    def given(self, kernel: int, split: CoreSplit) -> int:
        """Return the PMUs that take what the cores of a kernel put out.

        A product puts out ``lanes x stages`` blocks once per ``k`` steps, in rows as wide as a PMU.
        """
        share = self._shares[kernel]
        if not share.kernel.variant.is_gemm:
            return split.lanes
        return -(-split.cores * self._machine.stages_per_core // share.work.k)

    def taken(self, edge: int, split: CoreSplit) -> int:
        """Return the PMUs that feed the cores of the kernel that reads a tensor: one per lane, or as wide as stages."""
        label = self.labels[edge]
        match label:
            case LaneStage.LANE:
                return split.lanes
            case LaneStage.STAGE:
                return -(-split.stages * self._machine.stages_per_core // self._machine.lanes_per_core)
        assert_never(label)
