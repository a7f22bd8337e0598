"""Why a design has no solution, and the smallest relaxation that gives it one."""

from bisect import bisect_left
from collections.abc import Sequence
from math import ceil, isfinite

import numpy as np

from dfcompile.dfmodel_backend.columns import Column, members_of
from dfcompile.dfmodel_backend.evaluate.designs import Decision, figures_of
from dfcompile.dfmodel_backend.fusion.fuse import DesignFusion
from dfcompile.dfmodel_backend.fusion.fusion_problem import FusionProblem
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, least_chain
from dfcompile.dfmodel_backend.intra_chip.set_times import arc_times, fewest_pmus, set_times
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel, dram_need
from dfcompile.dfmodel_backend.kernel_sets import Arcs, arcs_of, single_arcs
from dfcompile.dfmodel_backend.options import MOST_DOWN_SETS, DesignOptions
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace

_LIMITS = ("dram_cap", "pmu", "sram_cap")  # in the order in which they are looked at


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
    capacity = model.design.machine.dram_bytes
    if capacity:
        unlimited = model.on(replace(model.design.machine, dram_bytes=0.0))
        found = DesignFusion(unlimited.design, DesignOptions(compatibility=model.compatibility)).fuse(unlimited)
        if found is not None:
            fastest = Decision(model.sharding, model.tiles, found.configs, found.stages)
            return _too_little_dram(model, figures_of(unlimited, fastest).dram_bytes, is_enough=True)
    always = dram_need(model).total
    if 0 < capacity < always and model.design.execution.batch.layers_in_graph == 1:
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
        found = f"found {capacity:.0f} bytes against {ceil(needed)} of a chip: {listed}"
    # Rounded up: of what is enough nothing is rounded away.
    remedy = f"{ceil(needed)} is enough" if is_enough else f"at least {ceil(needed)}"
    return InfeasibleError(
        f"field 'system.memory.dram_cap': {found} (dram_cap of {remedy}, or more tensor or pipeline parallel "
        "chips, or a smaller micro_batch_size)",
        "dram_cap",
        needed,
    )


def _too_large_kernel(model: DesignModel, position: int) -> InfeasibleError:
    alone = least_sram_alone(model)
    enough = max(alone) if model.design.is_kernel_by_kernel else _least_sram(model)
    enough = enough if isfinite(enough) else max(alone)
    return InfeasibleError(
        f"kernel {model.shares[position].kernel.name!r}: needs {ceil(alone[position])} bytes of SRAM alone, in "
        f"{model.tiles} tiles, against {model.sram_capacity:.0f} of the chip (system.accelerator.sram_cap of "
        f"{ceil(enough)} is enough for all kernels, or a smaller tile_size, or more tensor parallel chips)",
        "sram_cap",
        enough,
    )


def least_sram_alone(model: DesignModel) -> Column:
    """Return the SRAM of each kernel alone, its weights in as many tiles as it has rows."""
    return model.sram_bytes(np.eye(len(model.shares), dtype=bool), np.array(model.most_weight_tiles))


def _too_few_configurations(model: DesignModel) -> InfeasibleError:
    """Say how much SRAM would do with so many configurations, and how many configurations with so much SRAM."""
    slots = model.design.slots
    remedies = []
    sram = _least_sram(model) if model.sram_capacity else np.inf  # no remedy where it is no limit
    if np.isfinite(sram):
        remedies.append(f"system.accelerator.sram_cap of at least {ceil(sram)}")
    if more := _fewest_configurations(model):
        remedies.append(f"execution.num_config of at least {more}")
    if cores := _fewest_cores(model):
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
    unlimited = model.on(replace(model.design.machine, sram_bytes=0.0, dram_bytes=0.0))
    problem = FusionProblem(unlimited)
    arcs = _arcs(problem)
    sizes = unlimited.sram_bytes(arcs.members)
    alone = arcs.members.sum(axis=1) == 1
    sizes[alone] = least_sram_alone(unlimited)[np.argmax(arcs.members[alone], axis=1)]
    return least_chain(arcs, sizes[arcs.added], problem.shape, np.maximum)[0]


def _fewest_cores(model: DesignModel) -> int:
    """Return the fewest cores with which the configurations suffice, a core a kernel at least; 0 if none are enough."""
    machine = model.design.machine
    low, high, known = machine.cores, len(model.design.kernels), _KnownArcs()

    def fits(cores: int) -> bool:
        return _fits(model.on(replace(machine, cores=cores)), known)

    if low >= high or not fits(high):  # lists the sets that may share most cores: fewer cores allow some of them
        return 0
    return low + 1 + bisect_left(range(low + 1, high), x=True, key=fits)


def _fewest_configurations(model: DesignModel) -> int:
    """Return the fewest configurations with which the SRAM suffices; 0 if none are enough."""
    execution, kernels, known = model.design.execution, len(model.design.kernels), _KnownArcs()
    more = range(model.design.slots + 1, kernels)
    return next((n for n in more if _fits(model.on(execution=replace(execution, configurations=n)), known)), kernels)


_KnownArcs = dict[tuple[int, ...], Arcs]  # by the sets of kernels that configurations may hold


def _fits(model: DesignModel, known: _KnownArcs) -> bool:
    """Return whether there is a chain of configurations; of what is known the first model allows most kernels."""
    problem = FusionProblem(model)
    masks = tuple(sorted(set(problem.shape.allowed)))
    if masks not in known:
        known[masks] = _arcs(problem)
    arcs = known[masks]
    kept = arcs.members.sum(axis=1)[arcs.added] <= problem.shape.most_kernels
    if not kept.all():
        arcs = replace(arcs, before=arcs.before[kept], after=arcs.after[kept], added=arcs.added[kept], limits={})
    return problem.least_chain(arcs)[1] is not None


def _arcs(problem: FusionProblem) -> Arcs:
    lattice, _ = problem.shape.considered(MOST_DOWN_SETS)
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
    if more := _configurations_that_suffice(model):
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
    # All limits but those of memory units; its times mean nothing.
    free = model.on(
        replace(model.design.machine, pmu=None, sram_bytes=0.0),
        replace(model.design.execution, compute_utilization=1.0),
    )
    problem = FusionProblem(free)
    by_kernel, is_pipelined = model.design.is_kernel_by_kernel, model.design.is_pipelined
    if by_kernel and not is_pipelined:
        count = len(model.shares)
        arcs = single_arcs(count)
        shape = replace(problem.shape, allowed=(problem.shape.every_kernel,) * count)
    else:
        arcs = _arcs(problem)
        shape = replace(problem.shape, allowed=problem.shape.allowed * problem.shape.stages)
    pmus_of_sets = fewest_pmus(model, arcs.members)
    if by_kernel:
        pmus_of_sets = np.where(arcs.members.sum(axis=1) == 1, pmus_of_sets, np.inf)
    needed = np.where(np.isfinite(arc_times(free, arcs)), pmus_of_sets[arcs.added], np.inf)
    pmus, chain = least_chain(arcs, needed, shape, np.maximum)
    return None if chain is None else (round(pmus), chain)


def _neediest(model: DesignModel, chain: Chain) -> tuple[int, str]:
    """Return the number of the set of a chain that needs most PMUs, and the names of its kernels."""
    members = members_of(chain, len(model.shares))
    slot = int(np.argmax(fewest_pmus(model, members)))
    names = [model.works[kernel].name for kernel in np.flatnonzero(members[slot])]
    listed = ", ".join(repr(name) for name in names[:3])
    return slot, listed + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _configurations_that_suffice(model: DesignModel) -> int:
    """Return the fewest configurations with which the PMUs suffice; 0 if none are enough."""
    assert model.pmu is not None
    design = model.design
    for slots in range(design.slots + 1, len(design.kernels) + 1):
        found = pmus_that_suffice(model.on(execution=replace(design.execution, configurations=slots)))
        if found is not None and found[0] <= model.pmu.pmus:
            return slots
    return 0
