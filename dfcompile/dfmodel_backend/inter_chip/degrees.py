"""Degrees of parallelism: which dimension of the network carries which."""

from typing import assert_never

from msgspec import Struct

from dfcompile.dfmodel_backend.machine.machine import Link, Machine
from dfcompile.dfmodel_backend.workload.design import Design, WorkloadKind
from dfcompile.errors import UserError

_ORDERS = (("TP", "PP"), ("TP", "DP"), ("PP", "DP"), ("TP", "PP", "DP"), ("SP", "TP", "PP", "DP"))


class Degrees(Struct, frozen=True):
    """Chips per tensor (TP), pipeline (PP), data (DP) and sequence (SP) parallel group, and the links of each."""

    tensor: int
    pipeline: int
    data: int
    sequence: int
    tensor_link: Link | None
    pipeline_link: Link | None
    data_link: Link | None
    sequence_link: Link | None


def degrees_of(design: Design) -> Degrees:
    """Return the degrees that a design gives.

    Raises:
        UserError: a degree is 0, an unknown or badly ordered parallelism, or a product that is not the chips.
    """
    machine, batch = design.machine, design.execution.batch
    per_copy = machine.chips // batch.copies
    if batch.copies * per_copy != machine.chips:
        raise UserError(f"design: found num_copy {batch.copies} against a divisor of {machine.chips} chips")
    links = machine.links
    product = 1
    for link in links:
        product *= link.chips
    if product != per_copy:
        sizes = " x ".join(str(link.chips) for link in links)
        raise UserError(f"topology {machine.topology}: found {sizes} chips against {per_copy}")
    match batch.kind:
        case WorkloadKind.DLRM:
            return Degrees(1, 1, per_copy, 1, None, None, None, None)
        case WorkloadKind.HPL | WorkloadKind.FFT:
            return Degrees(1, 1, 1, 1, None, None, None, None)
        case WorkloadKind.LLM:
            return _language_model_degrees(machine)
    assert_never(batch.kind)


def _language_model_degrees(machine: Machine) -> Degrees:
    links = machine.links
    order = tuple(link.parallelism for link in links)
    if len(order) == 1 and order[0] not in ("TP", "PP", "DP"):
        raise UserError(f"topology {machine.topology}: found parallelism {order[0]!r} against TP, PP or DP")
    if len(order) > 1 and order not in _ORDERS:
        raise UserError(
            f"topology {machine.topology}: found parallelism {', '.join(order)} against TP, PP, DP in order"
        )
    by_name = dict(zip(order, links, strict=True))

    def chips(name: str) -> int:
        return by_name[name].chips if name in by_name else 1

    return Degrees(
        chips("TP"),
        chips("PP"),
        chips("DP"),
        chips("SP"),
        by_name.get("TP"),
        by_name.get("PP"),
        by_name.get("DP"),
        by_name.get("SP"),
    )
