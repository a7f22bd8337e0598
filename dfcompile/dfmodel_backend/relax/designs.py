"""Why a design has no solution, and the smallest relaxation that gives it one."""

from collections.abc import Sequence
from math import ceil, isfinite

import numpy as np

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.design_options import MOST_DOWN_SETS, DesignOptions
from dfcompile.dfmodel_backend.evaluate.designs import Decision, figures_of
from dfcompile.dfmodel_backend.fusion.designs.fuse import DesignFusion
from dfcompile.dfmodel_backend.fusion.fuse import lattice_for
from dfcompile.dfmodel_backend.fusion.fusion_problem import FusionProblem
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, least_chain
from dfcompile.dfmodel_backend.intra_chip.set_times import arc_times, fewest_pmus, set_times
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel, dram_need
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs, arcs_kernel_by_kernel, arcs_of
from dfcompile.dfmodel_backend.options import MappingOptions
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

    It names what would be enough of DRAM, if all else fits; else what is always in DRAM, too few memory units, a kernel
    that does not fit SRAM alone, or too few configurations.
    """
    enough = _dram_of_fastest(model) if model.design.machine.dram_bytes else None
    if enough is not None:
        return _too_little_dram(model, enough, is_enough=True)
    always = dram_need(model).total
    if 0 < model.design.machine.dram_bytes < always and model.design.execution.batch.layers_in_graph == 1:
        return _too_little_dram(model, always, is_enough=False)
    if model.pmu is not None:
        too_few = too_few_pmus(model)
        if too_few is not None:
            return too_few
    if model.sram_capacity:
        too_large = np.flatnonzero(~np.isfinite(set_times(model, np.eye(len(model.shares), dtype=bool))))
        if len(too_large):
            return _too_large_kernel(model, int(too_large[0]))
    return _too_few_configurations(model)


def _dram_of_fastest(model: DesignModel) -> float | None:
    """Return what the fastest assignment keeps in DRAM where that is unlimited; None if other limits are broken."""
    design = model.design
    free = replace(design, machine=replace(design.machine, dram_bytes=0.0))
    unlimited = DesignModel(free, model.sharding, model.tiles, model.compatibility)
    found = DesignFusion(free, DesignOptions(compatibility=model.compatibility)).fuse(unlimited)
    if found is None:
        return None
    return figures_of(unlimited, Decision(model.sharding, model.tiles, found.configs, found.stages)).dram_bytes


def _too_little_dram(model: DesignModel, needed: float, *, is_enough: bool) -> InfeasibleError:
    """Return the error for a chip, or a stage of a pipeline, whose DRAM is too small."""
    capacity = model.design.machine.dram_bytes
    if model.design.is_pipelined:
        found = f"no {model.degrees.pipeline} pipeline stages hold all kernels in {capacity:.0f} bytes"
    else:
        need = dram_need(model)
        parts = {
            "weights": need.weights,
            "gradients": need.gradients,
            "optimizer states": need.optimizer,
            "activations in flight": need.activations,
            "tables": need.tables,
            "waiting tensors": needed - need.total,
        }
        listed = ", ".join(f"{name} {size:.0f}" for name, size in parts.items() if size)
        found = f"found {capacity:.0f} bytes against {_up(needed)} of a chip: {listed}"
    remedy = f"{_up(needed)} is enough" if is_enough else f"at least {_up(needed)}"
    return InfeasibleError(
        f"field 'system.memory.dram_cap': {found} (dram_cap of {remedy}, or more tensor or pipeline parallel "
        "chips, or a smaller micro_batch_size)",
        "dram_cap",
        needed,
    )


def _up(size: float) -> int:
    """Return the bytes to write where so many are enough: none are rounded away."""
    return ceil(size)


def _too_large_kernel(model: DesignModel, position: int) -> InfeasibleError:
    alone = least_sram_alone(model)
    enough = max(alone) if model.design.is_kernel_by_kernel else _least_sram(model)
    enough = enough if isfinite(enough) else max(alone)
    return InfeasibleError(
        f"kernel {model.shares[position].kernel.name!r}: needs {_up(alone[position])} bytes of SRAM alone, in "
        f"{model.tiles} tiles, against {model.sram_capacity:.0f} of the chip (system.accelerator.sram_cap of "
        f"{_up(enough)} is enough for all kernels, or a smaller tile_size, or more tensor parallel chips)",
        "sram_cap",
        enough,
    )


def least_sram_alone(model: DesignModel) -> Column:
    """Return the SRAM of each kernel alone, its weights in as many tiles as it has rows."""
    alone = np.eye(len(model.shares), dtype=bool)
    rows = np.array([share.work.rows if share.weight_bytes else 1 for share in model.shares], np.int64)
    return model.sram_bytes(alone, rows)


def _too_few_configurations(model: DesignModel) -> InfeasibleError:
    """Say how much SRAM would do with so many configurations, and how many configurations with so much SRAM."""
    slots = model.design.slots
    remedies = []
    sram = _least_sram(model) if model.sram_capacity else np.inf  # no remedy where it is no limit
    if np.isfinite(sram):
        remedies.append(f"system.accelerator.sram_cap of at least {_up(sram)}")
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
    problem = FusionProblem(unlimited)
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
        return lists.fits(FusionProblem(DesignModel(larger, model.sharding, model.tiles, model.compatibility)))

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
    for slots in range(design.slots + 1, len(design.kernels)):
        wider = replace(design, execution=replace(design.execution, configurations=slots))
        wide = DesignModel(wider, model.sharding, model.tiles, model.compatibility)
        if lists.fits(FusionProblem(wide)):
            return slots
    return len(design.kernels)


class _KnownLists:
    """Lists the possible configurations once for problems that allow the same sets of kernels.

    The first of them has to allow most kernels in a configuration.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], Arcs] = {}

    def fits(self, problem: FusionProblem) -> bool:
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


def _arcs(problem: FusionProblem) -> Arcs:
    lattice, _ = lattice_for(problem.shape, OPTIONS.max_down_sets)
    return arcs_of(problem.shape, lattice, problem.may_grow)


def too_few_pmus(model: DesignModel) -> InfeasibleError | None:
    """Return the error of a design that only memory units make impossible, else None.

    It names a kernel that does not fit alone, else the configuration that is too large where all are as small as can
    be; and the fewest PMUs that are enough.
    """
    assert model.pmu is not None
    found = pmus_that_suffice(model)
    if found is None or found[0] <= model.pmu.pmus:
        return None
    enough, chain = found
    remedies = [f"system.accelerator.pmu of at least {enough}", "a larger pmu_cap"]
    tiles = f"{model.tiles} tile" + "s" * (model.tiles > 1)
    alone = fewest_pmus(model, np.eye(len(model.shares), dtype=bool))
    largest = int(np.argmax(alone))
    if alone[largest] > model.pmu.pmus:
        return InfeasibleError(
            f"kernel {model.shares[largest].kernel.name!r}: needs {alone[largest]:.0f} PMUs alone, in {tiles}, "
            f"against {model.pmu.pmus} of the chip ({', '.join(remedies)}, a smaller tile_size, or more "
            "tensor parallel chips)",
            "pmu",
            enough,
        )
    more = _configurations_that_suffice(model)
    if more:
        remedies.append(f"execution.num_config of at least {more}")
    slot, names = _neediest(model, chain)
    return InfeasibleError(
        f"configuration {slot}: needs {enough} PMUs for {names}, in {tiles}, against {model.pmu.pmus} of "
        f"the chip, and no other {model.design.slots} configurations need fewer ({', or '.join(remedies)})",
        "pmu",
        enough,
    )


def pmus_that_suffice(model: DesignModel) -> tuple[int, Chain] | None:
    """Return the fewest PMUs of a chip that holds all configurations, and those; None if other limits are broken."""
    free = _without_pmus(model)
    problem = FusionProblem(free)
    by_kernel, is_pipelined = model.design.is_kernel_by_kernel, model.design.is_pipelined
    if by_kernel and not is_pipelined:
        count = len(model.shares)
        arcs = arcs_kernel_by_kernel(count)
        shape = replace(problem.shape, allowed=(problem.shape.every_kernel,) * count)
    else:
        lattice, _ = lattice_for(problem.shape, MOST_DOWN_SETS)
        arcs = arcs_of(problem.shape, lattice, problem.may_grow)
        shape = replace(problem.shape, allowed=problem.shape.allowed * problem.shape.stages)
    pmus_of_sets = fewest_pmus(model, arcs.members)
    if by_kernel:
        pmus_of_sets = np.where(arcs.members.sum(axis=1) == 1, pmus_of_sets, np.inf)
    needed = np.where(np.isfinite(arc_times(free, arcs)), pmus_of_sets[arcs.added], np.inf)
    pmus, chain = least_chain(arcs, needed, shape, np.maximum)
    return None if chain is None else (round(pmus), chain)


def _without_pmus(model: DesignModel) -> DesignModel:
    """Return the model with all limits but those of memory units; its times mean nothing."""
    design = model.design
    machine = replace(design.machine, pmu=None, sram_bytes=0.0)
    execution = replace(design.execution, compute_utilization=1.0)
    return DesignModel(
        replace(design, machine=machine, execution=execution), model.sharding, model.tiles, model.compatibility
    )


def _neediest(model: DesignModel, chain: Chain) -> tuple[int, str]:
    """Return the number of the set of a chain that needs most PMUs, and the names of its kernels."""
    kernels = range(len(model.shares))
    members = np.array([[bool(added >> kernel & 1) for kernel in kernels] for added in chain])
    slot = int(np.argmax(fewest_pmus(model, members)))
    names = [model.shares[kernel].kernel.name for kernel in kernels if members[slot, kernel]]
    listed = ", ".join(repr(name) for name in names[:3])
    return slot, listed + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _configurations_that_suffice(model: DesignModel) -> int:
    """Return the fewest configurations with which the PMUs suffice; 0 if none are enough."""
    assert model.pmu is not None
    design = model.design
    for slots in range(design.slots + 1, len(design.kernels) + 1):
        execution = replace(design.execution, configurations=slots)
        wider = DesignModel(
            replace(design, execution=execution), model.sharding, model.tiles, model.compatibility
        )  # fmt: skip
        found = pmus_that_suffice(wider)
        if found is not None and found[0] <= model.pmu.pmus:
            return slots
    return 0
