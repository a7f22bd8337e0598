"""Which correction of DFModel, or which of its flaws that is repeated, changes which figure."""

from collections.abc import Iterator, Mapping

import numpy as np
from msgspec import Struct

from dfcompile.dfmodel_backend.compatibility import CORRECTIONS, ORIGINAL, RIGHT, Compatibility
from dfcompile.dfmodel_backend.evaluate.designs import DesignFigures, StepFigures, evaluate_design
from dfcompile.dfmodel_backend.intra_chip.set_times import fewest_pmus
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace

RELATIVE = 1e-12  # smaller changes are rounding


class Correction(Struct, frozen=True):
    """One figure of a solution that is another without a correction.

    Attributes:
        switch: name in `Compatibility`.
        text: what is right.
        is_applied: whether the solution has it; if not it repeats the flaw.
        figure: with its unit.
        value: in the solution.
        other_value: of the same assignment with the switch turned.
        steps: configurations then; none where they need more PMUs than there are.
    """

    switch: str
    text: str
    is_applied: bool
    figure: str
    value: float
    other_value: float
    steps: tuple[StepFigures, ...] = ()


def corrections_of(solution: DesignSolution) -> tuple[Correction, ...]:
    """Return every correction, one by one, that changes a figure of the assignment; the assignment stays."""
    return tuple(_changes(solution))


def _changes(solution: DesignSolution) -> Iterator[Correction]:
    used = solution.options.compatibility
    figures = _named(solution.figures)
    for switch, text in CORRECTIONS.items():
        is_applied = getattr(used, switch) == getattr(RIGHT, switch)
        other = getattr(ORIGINAL if is_applied else RIGHT, switch)
        if other == getattr(used, switch):
            continue  # the original has no flaw to compare with
        flipped: Mapping[str, bool] = {switch: other}
        turned = replace(used, **flipped)
        try:
            others = evaluate_design(solution.design, solution.decision, turned)
        except InfeasibleError:  # the assignment needs more PMUs then: there are no other figures
            yield Correction(switch, text, is_applied, *_pmus_needed(solution, turned))
            continue
        named = _named(others)
        for figure, value in figures.items():
            if abs(named[figure] - value) > RELATIVE * max(abs(value), abs(named[figure])):
                yield Correction(switch, text, is_applied, figure, value, named[figure], others.steps)


def _pmus_needed(solution: DesignSolution, turned: Compatibility) -> tuple[str, float, float]:
    """Return the figure that makes an assignment impossible, as it is and turned: the PMUs of its neediest set."""
    decision = solution.decision
    place = np.array([decision.configs[kernel.id] for kernel in solution.design.kernels])
    members = place[None, :] == np.arange(place.max() + 1)[:, None]
    needed, others = (
        fewest_pmus(DesignModel(solution.design, decision.sharding, decision.tiles, one), members)
        for one in (solution.options.compatibility, turned)
    )
    worst = int(np.argmax(others))
    grid = solution.design.machine.pmu
    assert grid is not None
    figure = f"PMUs that configuration {worst} needs, of {grid.pmus} on the chip"
    return figure, float(needed[worst]), float(others[worst])


def _named(figures: DesignFigures) -> dict[str, float]:
    return {
        "time of a batch (s)": figures.batch_s,
        "DRAM of a chip (bytes)": figures.dram_bytes,
        "DRAM traffic of a batch (bytes)": figures.dram_traffic_bytes,
        "most SRAM of a configuration (bytes)": max((step.sram_bytes for step in figures.steps), default=0.0),
        "cost (USD)": figures.cost_usd,
        "power (W)": figures.power_w,
    }
