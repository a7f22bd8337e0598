"""The audit of what a machine attains, and whether it is part of the one that was asked for."""

from dfcompile.audit.comparing import MULTIPLIED, expect_figures
from dfcompile.dfmodel_backend.check.machines import PER_GIGA, ChipNetwork, dram_bytes_per_ns, peak_flop_per_s
from dfcompile.dfmodel_backend.machine.system import UNLIMITED_GB_PER_S, System
from dfcompile.errors import VerificationError
from dfcompile.report.mapping_figures import RoofsSummary


def audit_roofs(where: str, summary: RoofsSummary, system: System) -> None:
    """Compute the roofs of one chip anew.

    Args:
        where: path of the part in the report.
        summary: the part.
        system: with the chips in use.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    bandwidth = dram_bytes_per_ns(system)
    dram = None if bandwidth >= UNLIMITED_GB_PER_S else bandwidth * PER_GIGA
    received = ChipNetwork(system.network).received_gb_per_s * PER_GIGA
    expect_figures(where, summary, MULTIPLIED, flop_per_s=peak_flop_per_s(system), dram_bytes_per_s=dram)
    expect_figures(where, summary, MULTIPLIED, network_bytes_per_s=received)


def require_part(where: str, part: System, whole: System) -> None:
    """Require that chips in use are some of those at hand, along some dimensions of their network, each as it is.

    Args:
        where: path of the mapping in the report.
        part: with the chips in use.
        whole: with all chips at hand.

    Raises:
        VerificationError: they are others.
    """
    if (part.accelerator, part.dram) != (whole.accelerator, whole.dram):
        raise VerificationError(f"{where}: found chips of {part.name!r} that are not those of {whole.name!r}")
    kinds = whole.network.kind.split("_")
    at_hand = iter(zip(kinds, whole.network.dimensions, strict=False))
    used = zip(part.network.kind.split("_"), part.network.dimensions, strict=False)
    for kind, dimension in used:
        for other, most in at_hand:
            same_link = dimension.link_bandwidth_gb_per_s == most.link_bandwidth_gb_per_s
            if kind == other and same_link and dimension.chips <= most.chips:
                break
        else:
            raise VerificationError(f"{where}: found {dimension.chips} chips along {kind!r} against the machine's")
