"""The share of a chip from first principles, for checkers."""

import math
from typing import assert_never

from dfcompile.dfmodel_backend.evaluate.designs import Decision
from dfcompile.dfmodel_backend.workload.design import Design, DesignKernel, Dim, WorkloadKind


def extents_of(design: Design, decision: Decision, kernel: DesignKernel) -> tuple[int, int, int]:
    """Return rows, k and columns of one tile on one chip."""
    extents = {"M": kernel.outer * kernel.m, "K": kernel.k, "N": kernel.n}
    kind = design.execution.batch.kind
    match kind:
        case WorkloadKind.LLM:
            _split_rows(design, decision, kernel, extents)
        case WorkloadKind.HPL:
            chips = [link.chips for link in design.machine.links]
            x, y = (1, chips[0]) if len(chips) == 1 else (math.prod(chips[:-1]), chips[-1])
            extents["M"], extents["K"] = math.ceil(extents["M"] / x), math.ceil(extents["K"] / y)
        case WorkloadKind.FFT:
            extents["N"] = math.ceil(extents["N"] / math.prod(link.chips for link in design.machine.links))
        case WorkloadKind.DLRM:
            pass
        case _:
            assert_never(kind)
    return extents["M"], extents["K"], extents["N"]


def _split_rows(design: Design, decision: Decision, kernel: DesignKernel, extents: dict[str, int]) -> None:
    """Divide extents of a language model's kernel among tensor parallel chips and tiles."""
    tensor = next((link.chips for link in design.machine.links if link.parallelism == "TP"), 1)
    for dim, count in ((decision.sharding.get(kernel.id, Dim.NONE), tensor), (kernel.tiling, decision.tiles)):
        axis = "M" if dim in (Dim.OUTER, Dim.M) else dim.value
        if axis in extents:
            extents[axis] = math.ceil(extents[axis] / count)
