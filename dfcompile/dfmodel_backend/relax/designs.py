"""Why a design has no solution, and the smallest relaxation that gives it one."""

from collections.abc import Sequence

import numpy as np

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.design_options import MOST_DOWN_SETS
from dfcompile.dfmodel_backend.evaluate.designs import Decision, figures_of
from dfcompile.dfmodel_backend.fusion.fuse import lattice_for
from dfcompile.dfmodel_backend.fusion.pipelines.partition import fuse_stages
from dfcompile.dfmodel_backend.fusion.set_problem import SetProblem
from dfcompile.dfmodel_backend.fusion.solvers.path import least_chain
from dfcompile.dfmodel_backend.intra_chip.design_shape import slot_count
from dfcompile.dfmodel_backend.intra_chip.set_times import set_times
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel, DramNeed, dram_need
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs, arcs_of
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.relax.memory_units import too_few_pmus
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace

_LIMITS = ("dram_cap", "pmu", "sram_cap")  # in the order in which they are looked at
OPTIONS = MappingOptions(max_down_sets=MOST_DOWN_SETS)


def infeasible_shardings(models: Sequence[DesignModel]) -> InfeasibleError:
    """Return the error for a design of which no choice fits: of its shardings that of the one that needs least.

    Args:
        models: of each sharding, with the finest tiles.
    """
    errors = [infeasible_design(model) for model in models]
    return min(errors, key=lambda error: (-_LIMITS.index(error.limit) if error.limit else 0, error.enough))


def infeasible_design(model: DesignModel) -> InfeasibleError:
    """Return the error for a design of which no choice fits; ``model`` has the finest tiles.

    It names, in this order, what is always in DRAM, a kernel that does not fit SRAM or memory units alone, too few
    configurations or memory units, tensors that wait in DRAM; and what would be enough.
    """
    machine = model.design.machine
    need = dram_need(model)
    if machine.dram_bytes and need.total > machine.dram_bytes and model.design.execution.batch.layers_in_graph == 1:
        return _too_little_dram(need, need.total, machine.dram_bytes)
    if model.pmu is not None:
        too_few = too_few_pmus(model)
        if too_few is not None:
            return too_few
    count = len(model.shares)
    alone = np.eye(count, dtype=bool)
    if model.sram_capacity:
        too_large = np.flatnonzero(~np.isfinite(set_times(model, alone)))
        if len(too_large):
            return _too_large_kernel(model, int(too_large[0]))
    if model.design.is_pipelined and machine.dram_bytes:
        found = _too_little_dram_of_stages(model)
        if found is not None:
            return found
    if not model.design.is_kernel_by_kernel:
        return _too_few_configurations(model)
    waiting = model.waiting_bytes(np.tri(count, k=-1, dtype=bool), alone)
    worst = int(np.argmax(waiting))
    return InfeasibleError(
        f"kernel {model.shares[worst].kernel.name!r}: found {need.total + waiting[worst]:.0f} bytes in DRAM while it "
        f"runs against {machine.dram_bytes:.0f} (system.memory.dram_cap of at least "
        f"{need.total + waiting.max():.0f}, a smaller micro_batch_size, or more tensor parallel chips)",
        "dram_cap",
        float(need.total + waiting.max()),
    )


def _too_little_dram(need: DramNeed, needed: float, capacity: float) -> InfeasibleError:
    parts = {
        "weights": need.weights,
        "gradients": need.gradients,
        "optimizer states": need.optimizer,
        "activations in flight": need.activations,
        "tables": need.tables,
    }
    listed = ", ".join(f"{name} {size:.0f}" for name, size in parts.items() if size)
    return InfeasibleError(
        f"field 'system.memory.dram_cap': found {capacity:.0f} bytes against {needed:.0f} of a chip: {listed} "
        f"(dram_cap of at least {needed:.0f}, or more tensor or pipeline parallel chips)",
        "dram_cap",
        needed,
    )


def _too_little_dram_of_stages(model: DesignModel) -> InfeasibleError | None:
    """Return the error of a pipeline whose stages fit but for DRAM, with that of the fastest one; else None."""
    design = model.design
    free = replace(design, machine=replace(design.machine, dram_bytes=0.0))
    unlimited = DesignModel(free, model.sharding, model.tiles, model.compatibility)
    found = fuse_stages(unlimited, _arcs(SetProblem(unlimited)))
    if found is None:
        return None
    decision = Decision(model.sharding, model.tiles, found.configs, found.stages)
    needed = figures_of(unlimited, decision).dram_bytes
    return InfeasibleError(
        f"field 'system.memory.dram_cap': no {model.degrees.pipeline} pipeline stages hold all kernels in "
        f"{design.machine.dram_bytes:.0f} bytes (dram_cap of {needed:.0f} is enough, or more tensor or pipeline "
        "parallel chips)",
        "dram_cap",
        needed,
    )


def _too_large_kernel(model: DesignModel, position: int) -> InfeasibleError:
    needed = least_sram_alone(model)[position]
    return InfeasibleError(
        f"kernel {model.shares[position].kernel.name!r}: needs {needed:.0f} bytes of SRAM alone, in {model.tiles} "
        f"tiles, against {model.sram_capacity:.0f} of the chip (system.accelerator.sram_cap of at least {needed:.0f}, "
        "a smaller tile_size, or more tensor parallel chips)",
        "sram_cap",
        needed,
    )


def least_sram_alone(model: DesignModel) -> Column:
    """Return the SRAM of each kernel alone, its weights in as many tiles as it has rows."""
    alone = np.eye(len(model.shares), dtype=bool)
    rows = np.array([share.work.rows if share.weight_bytes else 1 for share in model.shares], np.int64)
    return model.sram_bytes(alone, rows)


def _too_few_configurations(model: DesignModel) -> InfeasibleError:
    """Say how much SRAM would do with so many configurations, and how many configurations with so much SRAM."""
    slots = slot_count(model.design)
    remedies = []
    sram = _least_sram(model) if model.sram_capacity else np.inf  # no remedy where it is no limit
    if np.isfinite(sram):
        remedies.append(f"system.accelerator.sram_cap of at least {sram:.0f}")
    more = _fewest_configurations(model)
    if more:
        remedies.append(f"execution.num_config of at least {more}")
    cores = _fewest_cores(model)
    if cores:
        remedies.append(f"system.accelerator.core of at least {cores}")
    if not remedies:
        remedies.append("other pins of kernels to configurations")
    return InfeasibleError(
        f"field 'execution.num_config': no {slots} configurations hold all kernels in "
        f"{model.design.machine.sram_bytes:.0f} bytes of SRAM and {model.design.machine.cores} cores "
        f"({', or '.join(remedies)})",
        "sram_cap",
        sram,
    )


def _least_sram(model: DesignModel) -> float:
    """Return the least SRAM with which the configurations suffice: a chain whose largest set is smallest."""
    design = model.design
    free = replace(design, machine=replace(design.machine, sram_bytes=0.0, dram_bytes=0.0))
    unlimited = DesignModel(free, model.sharding, model.tiles, model.compatibility)
    problem = SetProblem(unlimited)
    arcs = _arcs(problem)
    sizes = unlimited.sram_bytes(arcs.members)
    alone = arcs.members.sum(axis=1) == 1
    sizes[alone] = least_sram_alone(unlimited)[np.argmax(arcs.members[alone], axis=1)]
    return least_chain(arcs, sizes[arcs.added], problem.shape, np.maximum)[0]


def _fewest_cores(model: DesignModel) -> int:
    """Return the fewest cores with which the configurations suffice, a core a kernel at least; 0 if none are enough."""
    design, lists = model.design, _KnownLists()

    def fits(cores: int) -> bool:
        larger = replace(design, machine=replace(design.machine, cores=cores))
        return lists.fits(SetProblem(DesignModel(larger, model.sharding, model.tiles, model.compatibility)))

    low, high = design.machine.cores, len(design.kernels)
    if low >= high or not fits(high):  # lists the sets that may share most cores: fewer cores allow some of them
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _fewest_configurations(model: DesignModel) -> int:
    """Return the fewest configurations with which the SRAM suffices; 0 if none are enough."""
    design, lists = model.design, _KnownLists()
    for slots in range(slot_count(design) + 1, len(design.kernels)):
        wider = replace(design, execution=replace(design.execution, configurations=slots))
        wide = DesignModel(wider, model.sharding, model.tiles, model.compatibility)
        if lists.fits(SetProblem(wide)):
            return slots
    return len(design.kernels)


class _KnownLists:
    """Lists the possible configurations once for problems that allow the same sets of kernels.

    The first of them has to allow most kernels in a configuration.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], Arcs] = {}

    def fits(self, problem: SetProblem) -> bool:
        """Return whether there is a chain of configurations."""
        masks = tuple(sorted(set(problem.shape.allowed)))
        if masks not in self._known:
            self._known[masks] = _arcs(problem)
        return problem.least_chain(_with_few_kernels(self._known[masks], problem.shape.most_kernels))[1] is not None


def _with_few_kernels(arcs: Arcs, most: int) -> Arcs:
    """Return the arcs whose configurations have at most so many kernels."""
    kept = arcs.members.sum(axis=1)[arcs.added] <= most
    if kept.all():
        return arcs
    return replace(arcs, before=arcs.before[kept], after=arcs.after[kept], added=arcs.added[kept], limits={})


def _arcs(problem: SetProblem) -> Arcs:
    lattice, _ = lattice_for(problem.shape, OPTIONS.max_down_sets)
    return arcs_of(problem.shape, lattice, problem.may_grow)
