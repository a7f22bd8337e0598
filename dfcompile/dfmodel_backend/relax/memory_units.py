"""Why a design with memory units (PMUs) has no solution, and how many of them, or of configurations, are enough."""

import numpy as np

from dfcompile.dfmodel_backend.design_options import MOST_DOWN_SETS
from dfcompile.dfmodel_backend.fusion.fuse import lattice_for
from dfcompile.dfmodel_backend.fusion.fusion_problem import FusionProblem
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, least_chain
from dfcompile.dfmodel_backend.intra_chip.design_shape import slot_count
from dfcompile.dfmodel_backend.intra_chip.memory_units.weight_tiles import fewest_pmus
from dfcompile.dfmodel_backend.intra_chip.set_times import arc_times
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets.arcs import arcs_kernel_by_kernel, arcs_of
from dfcompile.errors import InfeasibleError
from dfcompile.records import replace


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
        f"the chip, and no other {slot_count(model.design)} configurations need fewer ({', or '.join(remedies)})",
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
    for slots in range(slot_count(design) + 1, len(design.kernels) + 1):
        execution = replace(design.execution, configurations=slots)
        wider = DesignModel(
            replace(design, execution=execution), model.sharding, model.tiles, model.compatibility
        )  # fmt: skip
        found = pmus_that_suffice(wider)
        if found is not None and found[0] <= model.pmu.pmus:
            return slots
    return 0
