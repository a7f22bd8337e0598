"""In which layouts the kernels of a design take tensors: by axes, or by the table of [ko24]."""

from collections.abc import Sequence

from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.inter_chip.layouts import Needs, needs_by_letter
from dfcompile.dfmodel_backend.inter_chip.operand_axes import needs_by_axes
from dfcompile.dfmodel_backend.workload.design import DesignEdge, DesignKernel


def needs_of(
    kernels: Sequence[DesignKernel], edges: Sequence[DesignEdge], compatibility: Compatibility
) -> tuple[Needs, ...]:
    """Return, per edge, in which layout its reader takes the tensor for each split of the reader."""
    return needs_by_letter(kernels, edges) if compatibility.layouts_by_letter else needs_by_axes(kernels, edges)
