"""Which degrees of parallelism are best for a step: all are looked at."""

from enum import StrEnum, unique

from msgspec import Struct

from dfcompile.errors import InfeasibleError, UserError
from dfcompile.host.stages import counted
from dfcompile.language_models.energy import energy_of, is_known
from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.parallel.degrees import Degrees, all_degrees
from dfcompile.language_models.parallel.deployment import Case, Deployment, Deployments


@unique
class Aim(StrEnum):
    """What is to be small."""

    TIME = "time"  # of the step
    COST = "cost"  # chips times time
    ENERGY = "energy"  # of all chips


class Found(Struct, frozen=True):
    """The best deployment, and how many degrees were looked at and were not possible."""

    best: Deployment
    tried: int
    infeasible: int


def best_degrees(case: Case, chips: tuple[int, ...], aim: Aim = Aim.TIME, fixed: Degrees | None = None) -> Found:
    """Return the deployment of the least time, or cost, on one of some numbers of chips; ties go to fewer groups.

    Raises:
        UserError: energy is to be small, and the device does not say what costs any.
        InfeasibleError: no degrees are possible; the message is that of those that need least.
    """
    if aim is Aim.ENERGY and not is_known(case.device):
        where = f"system {case.device.name!r}"
        raise UserError(f"--aim energy: found no energies of {where} (energy.mac.FORMAT and others)")
    experts, layers, sequences = case.model.most_experts, len(case.model.layers), case.batch.sequences
    best: tuple[tuple[float, ...], Deployment] | None = None
    nearest: InfeasibleError | None = None
    tried = infeasible = 0
    for count in counted(chips):
        deployments = Deployments(case, count)
        choices = all_degrees(count, experts=experts, layers=layers, sequences=sequences)
        for degrees in counted((fixed,) if fixed is not None else tuple(choices)):
            tried += 1
            try:
                one = deployments.deployed(degrees)
            except InfeasibleError as error:
                infeasible += 1
                nearest = error if nearest is None else min(nearest, error, key=lambda known: known.enough)
                continue
            key = order(one, aim, case.device)
            if best is None or key < best[0]:
                best = key, one
    if best is None:
        raise nearest or InfeasibleError("degrees: found none for so many chips")
    return Found(best[1], tried, infeasible)


def order(one: Deployment, aim: Aim, device: Device) -> tuple[float, ...]:
    """Return what deployments are compared by."""
    degrees, measure, parts = one.degrees, one.exec_s, one.degrees.micro_batches
    if aim is Aim.COST:
        measure *= degrees.chips
    elif aim is Aim.ENERGY:
        measure = energy_of(one.kernels, device, one.exec_s, degrees.chips, parts, one.link_bytes).total_j
    return measure, degrees.pipeline, degrees.sequence, degrees.expert, degrees.tensor, degrees.data, parts
