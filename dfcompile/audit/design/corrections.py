"""The audit of what a correction changes: figures of the same assignment with one switch turned."""

import math
from collections.abc import Mapping, Sequence

from dfcompile.audit.comparing import MULTIPLIED, expect_figures, expect_rows
from dfcompile.audit.design.batch import DesignAccount
from dfcompile.dfmodel_backend import Correction, DesignSolution
from dfcompile.dfmodel_backend.check.decided_design import DecidedDesign, Kernels
from dfcompile.dfmodel_backend.check.designs import check_units
from dfcompile.dfmodel_backend.check.machines import PER_S
from dfcompile.dfmodel_backend.check.steps import sram_of
from dfcompile.dfmodel_backend.compatibility import CORRECTIONS, ORIGINAL, RIGHT
from dfcompile.dfmodel_backend.workload.design import WorkloadKind
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from dfcompile.report.design.figures import CorrectionSummary


def audit_corrections(
    where: str,
    summaries: Sequence[CorrectionSummary],
    solution: DesignSolution,
    account: DesignAccount,
    corrections: Sequence[Correction],
) -> None:
    """Compute anew what figures are, and what they would be with a switch turned.

    Args:
        where: path of the part in the report.
        summaries: the part.
        solution: that the report is of.
        account: of it.
        corrections: with the configurations under the turned switch, whose splits of cores are as decided there.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    own = _named(account)
    turned: dict[str, Mapping[str, float]] = {}
    for at, summary, correction in expect_rows(where, summaries, corrections):
        switch = correction.switch
        is_right = getattr(solution.options.compatibility, switch) == getattr(RIGHT, switch)
        expect_figures(at, summary, switch=switch.replace("_", "-"), text=CORRECTIONS[switch], applied=is_right)
        expect_figures(at, summary, figure=correction.figure)
        if not correction.steps:
            _audit_units(at, summary, correction, solution)
            continue
        if switch not in turned:
            turned[switch] = _turned(at, solution, correction, is_right=is_right)
        other = turned[switch][summary.figure]
        expect_figures(at, summary, MULTIPLIED, value=own[summary.figure], other_value=other)


def _named(account: DesignAccount) -> Mapping[str, float]:
    return {
        "time of a batch (s)": account.batch_ns / PER_S,
        "DRAM of a chip (bytes)": account.memory.total,
        "DRAM traffic of a batch (bytes)": account.dram_traffic_bytes,
        "most SRAM of a configuration (bytes)": max(step.sram_bytes for step in account.steps),
        "cost (USD)": account.price_usd,
        "power (W)": account.power_w,
    }


def _audit_units(where: str, summary: CorrectionSummary, correction: Correction, solution: DesignSolution) -> None:
    """Hold memory units that a configuration needs against those of the chip: turned, they are too many."""
    grid = solution.design.machine.pmu
    if grid is None or not correction.value <= grid.pmus < correction.other_value:
        raise VerificationError(f"{where}: found {correction.value} PMUs, then {correction.other_value}")
    expect_figures(where, summary, value=correction.value, other_value=correction.other_value)


def _turned(where: str, solution: DesignSolution, correction: Correction, *, is_right: bool) -> Mapping[str, float]:
    """Return the figures with a switch turned, of configurations whose weights come in as many tiles as they must."""
    switch = correction.switch
    flipped: Mapping[str, bool] = {switch: getattr(ORIGINAL if is_right else RIGHT, switch)}
    turned = replace(solution.options.compatibility, **flipped)
    decided = DecidedDesign(solution.design, solution.decision, turned)
    for number, step in enumerate(correction.steps):
        inside, at = decided.inside(number), f"{where}: configuration {number}"
        if not inside:
            continue
        if solution.design.machine.pmu is not None:
            check_units(decided, step, at)
        else:
            compute_ns, tiles = solution.figures.steps[number].compute_ns, _fewest_weight_tiles(decided, inside)
            expect_figures(at, step, compute_ns=compute_ns, weight_tiles=tiles)
    return _named(DesignAccount(decided, correction.steps))


def _fewest_weight_tiles(decided: DecidedDesign, inside: Kernels) -> int:
    """Return the fewest tiles of the weights of a kernel alone with which it fits SRAM; if none do they come whole."""
    capacity = decided.design.machine.sram_bytes
    if len(inside) != 1 or not capacity or decided.design.execution.batch.kind is not WorkloadKind.LLM:
        return 1
    whole, halves = (sram_of(decided, inside, tiles) for tiles in (1, 2))
    shared = 2 * (whole - halves)
    rows, _, _ = decided.extents(inside[0])
    if whole <= capacity or whole - shared >= capacity or not inside[0].has_weight:
        return 1
    tiles = math.ceil(shared / (capacity - (whole - shared)))
    return tiles if tiles <= rows else 1
