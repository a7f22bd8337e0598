"""Solves a design: degrees, micro-batch size, sharding, tile count and configurations of least time."""

import math
import time
from bisect import bisect_left

from msgspec import Struct

from dfcompile.dfmodel_backend.evaluate.designs import Decision, DesignFigures, batch_time_ns, figures_of
from dfcompile.dfmodel_backend.fusion.fuse import DesignFusion
from dfcompile.dfmodel_backend.inter_chip.degrees import degree_choices, degrees_of, micro_batch_choices, tile_counts
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel, never_fits_dram
from dfcompile.dfmodel_backend.options import DesignOptions, ShardingObjective, gap_above
from dfcompile.dfmodel_backend.relax import infeasible_shardings
from dfcompile.dfmodel_backend.sharding.designs import InterChip, candidate_shardings
from dfcompile.dfmodel_backend.workload.design import Design, WorkloadKind
from dfcompile.host.stages import counted

TIES = 1e-12  # relative


class DesignSolution(Struct, frozen=True):
    """A solved design; the figures are recomputed from the decision.

    Attributes:
        asked: as the file has it.
        design: with every degree and the micro-batch size settled.
        decision: sharding, tiles, configurations.
        figures: of the decision.
        communication_bytes: of the sharding, between chips, per input and layer.
        optimal: whether it is proved that no other choice of what was open is faster, with this sharding.
        bound_ns: a time of the batch that none can fall below.
        solver: that found the configurations.
        solver_s: wall time.
        points: choices of degrees, micro-batch size and tiles that there are.
        fused_points: those of them whose lower bound did not rule them out.
        options: of the run.
    """

    asked: Design
    design: Design
    decision: Decision
    figures: DesignFigures
    communication_bytes: float
    optimal: bool
    bound_ns: float
    solver: str
    solver_s: float
    points: int
    fused_points: int
    options: DesignOptions

    @property
    def gap(self) -> float:
        """How far the time may be above the optimum, as a part of the bound."""
        return gap_above(self.bound_ns, self.figures.batch_ns)


class _Best(Struct, frozen=True):
    key: tuple[float, int, int]  # time, tiles, order of the choice
    model: DesignModel
    decision: Decision
    inter_chip: InterChip


class _Choice(Struct, frozen=True):
    """A design with its degrees and micro-batch size settled, and a sharding of it."""

    number: int  # of the design
    design: Design
    inter_chip: InterChip


def solve_design(design: Design, options: DesignOptions) -> DesignSolution:
    """Choose all that a design leaves open so that a batch takes the least time.

    Ties go to fewer tiles, then to the choice that comes first: degrees as divisors in ascending order of the first
    dimension, then of the next, then smaller micro-batches. A choice whose lower bound is not below the best time so
    far is skipped.

    Raises:
        UserError: fields contradict each other.
        InfeasibleError: nothing fits; the message names the constraint and what would be enough.
    """
    return _Search(design, options).solve()


class _Search:
    def __init__(self, design: Design, options: DesignOptions) -> None:
        self._started = time.perf_counter()
        self._design = design
        self._options = options
        self._compatibility = options.compatibility
        self._shardings: dict[tuple[int, ...], tuple[InterChip, ...]] = {}
        self._models: dict[tuple[object, ...], DesignModel] = {}  # by sharding, degree and tiles
        self._fusion = DesignFusion(design, options)
        self._has_inputs = any(kernel.num_input for kernel in design.kernels)
        self._best: _Best | None = None
        self._bound_ns = float("inf")
        self._points: set[tuple[int, int]] = set()  # number of the degrees and micro-batch size, tiles
        self._fused: set[tuple[int, int]] = set()

    def solve(self) -> DesignSolution:
        designs = [
            chosen
            for degrees in degree_choices(self._design, self._compatibility)
            for chosen in micro_batch_choices(degrees, self._compatibility)
        ]
        choices = [
            _Choice(number, chosen, inter_chip)
            for number, chosen in enumerate(designs)
            for inter_chip in self._shardings_of(chosen)
        ]
        bounded = []
        for order, chosen in enumerate(counted(choices)):
            whole = self._model(chosen, 1)
            counts = tile_counts(chosen.design, self._compatibility)
            # Tiles only add, but to kernels with several inputs: those run one tile of each.
            fewest = (1,) if not self._has_inputs else counts
            bound_ns = min(self._least_batch_ns(self._model(chosen, tiles)) for tiles in fewest)
            bounded.append((bound_ns, order, never_fits_dram(whole)))
            self._points |= {(chosen.number, tiles) for tiles in counts}
        for bound_ns, order, is_too_large in counted(sorted(bounded)):
            if self._is_beaten(bound_ns):
                break
            if not is_too_large:
                self._try(choices[order], order)
        best = self._best
        if best is None:
            self._fusion.require_search()
            slowest = choices[max(bounded)[1]].number
            raise infeasible_shardings([self._finest(choice) for choice in choices if choice.number == slowest])
        figures = figures_of(best.model, best.decision)
        is_optimal = self._fusion.is_exact or self._bound_ns >= figures.batch_ns * (1 - TIES)
        return DesignSolution(
            asked=self._design,
            design=best.model.design,
            decision=best.decision,
            figures=figures,
            communication_bytes=best.inter_chip.communication_bytes,
            optimal=is_optimal,
            bound_ns=figures.batch_ns if is_optimal else min(self._bound_ns, figures.batch_ns),
            solver=self._fusion.solver,
            solver_s=time.perf_counter() - self._started,
            points=len(self._points),
            fused_points=len(self._fused),
            options=self._options,
        )

    def _least_batch_ns(self, model: DesignModel) -> float:
        """Return a time of a batch that no configurations beat."""
        return batch_time_ns(model, self._fusion.least_ns(model))

    def _is_beaten(self, bound_ns: float) -> bool:
        return self._best is not None and bound_ns > self._best.key[0] * (1 + TIES)

    def _try(self, choice: _Choice, order: int) -> None:
        """Fuse a choice of degrees, micro-batch size and sharding with each tile count that may be better."""
        if self._fusion.is_known_not_to_fit(self._finest(choice)):
            return
        models = [self._model(choice, tiles) for tiles in tile_counts(choice.design, self._compatibility)]
        bounds = [(self._least_batch_ns(model), model.tiles, model) for model in models]
        enough = 0  # tiles, as far as it is known
        for bound_ns, tiles, model in sorted(bounds, key=lambda one: one[:2]):
            if tiles < enough:
                continue
            self._bound_ns = min(self._bound_ns, bound_ns)
            if self._is_beaten(bound_ns):
                break
            if self._best is not None and not self._is_better((bound_ns, tiles, order)):
                continue  # at best a tie, which goes to the other one
            self._fused.add((choice.number, tiles))
            found = self._fusion.fuse(model, self._below_ns(tiles, order) / batch_time_ns(model, 1.0))
            if found is None:
                enough = max(enough, self._enough_tiles(models))
                continue
            decision = Decision(choice.inter_chip.sharding, tiles, found.configs, found.stages)
            time_ns = batch_time_ns(model, found.time_ns)
            if self._best is None or self._is_better((time_ns, tiles, order)):
                self._best = _Best((time_ns, tiles, order), model, decision, choice.inter_chip)

    def _enough_tiles(self, models: list[DesignModel]) -> int:
        """Return the fewest tiles of which configurations may fit SRAM; more than all if there are none."""
        if not self._fusion.may_fit(models[-1]):
            return models[-1].tiles + 1
        return models[bisect_left(models, x=True, hi=len(models) - 1, key=self._fusion.may_fit)].tiles

    def _below_ns(self, tiles: int, order: int) -> float:
        """Return the time of a batch that a choice must not exceed to be of interest."""
        if self._best is None:
            return math.inf
        best_ns = self._best.key[0]
        return best_ns if self._is_better((best_ns, tiles, order)) else best_ns * (1 - TIES)

    def _finest(self, choice: _Choice) -> DesignModel:
        return self._model(choice, tile_counts(choice.design, self._compatibility)[-1])

    def _model(self, choice: _Choice, tiles: int) -> DesignModel:
        """Return the model of a choice; those of equal tiles on as many tensor parallel chips have much in common."""
        design, sharding = choice.design, choice.inter_chip.sharding
        if design.execution.batch.kind is not WorkloadKind.LLM:
            return DesignModel(design, sharding, tiles, self._compatibility)
        key = (tuple(sharding.items()), degrees_of(design).tensor, tiles)
        model = DesignModel(design, sharding, tiles, self._compatibility, self._models.get(key))
        self._models.setdefault(key, model)
        return model

    def _is_better(self, key: tuple[float, int, int]) -> bool:
        assert self._best is not None
        old = self._best.key
        if abs(key[0] - old[0]) <= TIES * old[0]:
            return key[1:] < old[1:]
        return key[0] < old[0]

    def _shardings_of(self, design: Design) -> tuple[InterChip, ...]:
        """Return the shardings to try; that of fewest bytes is the same for all degrees."""
        objective = self._options.sharding_objective
        key: tuple[int, ...] = ()
        if objective is not ShardingObjective.BYTES:
            links = design.machine.links if design.machine.domain_chips else ()
            key = (degrees_of(design).tensor, *(link.chips for link in links))
        if key not in self._shardings:
            self._shardings[key] = candidate_shardings(design, objective, self._compatibility)
        return self._shardings[key]
